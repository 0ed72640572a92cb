"""Every way that a value takes through a run, each as a function that sends it there and gives what comes back."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from durable import App, Break, Context, Continue, Event, Signal, StateKey, Step, Update, step_context
from durable.testing import TestEnvironment

VALUE = Signal("value", Any)
ASK = Update("ask", Any, Any)
HAPPENED = Event("happened", Any)
TOKENS: list[str] = []
UNDONE: list[Any] = []
app = App("channels")


@app.entity
class Box(BaseModel):
    held: Any = None

    def put(self, value: Any) -> Any:
        self.held = value
        return "put"

    def get(self) -> Any:
        return self.held


def same(value: Any) -> Any:
    return value


def undo(result: Any, value: Any) -> None:
    UNDONE.append((result, value))


def fails(value: str) -> None:
    raise ValueError(value)


def appends(value: Any) -> None:
    step_context().stream("talk").append(value)


def submit(token: str) -> None:
    TOKENS.append(token)


@app.remote_step
def elsewhere(value: Any) -> Any:
    return value


@app.remote_step
def tells_progress(value: Any) -> Any:
    step_context().heartbeat(value)
    return "told"


@app.workflow
async def given(ctx: Context, value: Any) -> int:
    return len(str(value))


@app.workflow
async def gives(ctx: Context, value: Any) -> Any:
    return value


@app.workflow
async def steps(ctx: Context, value: Any) -> Any:
    return await ctx.step(Step(retries=0), same, value)


@app.workflow
async def ephemeral(ctx: Context, value: Any) -> Any:
    first = await ctx.step(Step("first", ephemeral=True), same, value)
    await ctx.step("second", same, 1)
    return first


@app.workflow
async def hears(ctx: Context) -> Any:
    return (await ctx.mailbox.next(VALUE)).body


@app.workflow
async def hears_too(ctx: Context, value: Any) -> Any:
    body = (await ctx.mailbox.next(VALUE)).body
    return body if body == value else "another"


@app.workflow
async def hears_many(ctx: Context) -> Any:
    await ctx.sleep("1m")
    messages = await ctx.mailbox.next_batch(VALUE, count=3)
    while len(messages) < 3:
        messages += await ctx.mailbox.next_batch(VALUE, count=3 - len(messages))
    return messages[-1].body


@app.workflow
async def sends(ctx: Context, value: Any) -> None:
    await ctx.mailbox.send("hears", VALUE, value)


@app.workflow
async def answers(ctx: Context) -> None:
    request = await ctx.updates.next(ASK)
    request.respond(request.arg)


@app.workflow
async def shows(ctx: Context, value: Any) -> None:
    ctx.set_state(StateKey("shown", Any), value)


@app.workflow
async def streams(ctx: Context, value: Any) -> None:
    ctx.stream("talk").append(value)
    await ctx.step(Step(retries=0), appends, value)


@app.workflow
async def waits_for_event(ctx: Context) -> Any:
    return await ctx.wait_for_event(HAPPENED, timeout="1h")


@app.workflow
async def undoes(ctx: Context, value: Any) -> None:
    await ctx.step(Step(retries=0).undo(undo), same, value)
    raise ValueError("now undo it")


@app.workflow
async def raises(ctx: Context, value: str) -> Any:
    await ctx.step(Step(retries=0), fails, value)


@app.workflow
async def calls(ctx: Context, value: Any) -> Any:
    return await ctx.call(elsewhere, value)


@app.workflow
async def progresses(ctx: Context, value: Any) -> Any:
    return await ctx.call(tells_progress, value)


@app.workflow
async def has_child(ctx: Context, value: Any) -> Any:
    return await ctx.child(gives, value)


@app.workflow
async def calls_entity(ctx: Context, value: Any) -> Any:
    await ctx.entity(Box, "b").call(Box.put, value)
    return await ctx.entity(Box, "b").call(Box.get)


@app.workflow
async def calls_back(ctx: Context) -> Any:
    return await ctx.callback("outside", submit, Any, timeout="1h")


@app.workflow
async def has_hook(ctx: Context) -> Any:
    hook = ctx.webhook("hook")
    ctx.set_state("url", hook.url)
    return await hook.wait(Any, timeout="1h")


@app.workflow
async def loops(ctx: Context, value: Any) -> Any:
    return await ctx.loop("loop", turn, state=[0, value], history=1)


async def turn(ctx: Context, state: list[Any]) -> Continue[list[Any]] | Break[Any]:
    await ctx.step(same, 1)
    return Continue([state[0] + 1, state[1]]) if state[0] < 2 else Break(state[1])


@app.workflow
async def goes_on(ctx: Context, value: list[Any]) -> Any:
    if value[0] > 0:
        return value[1]
    return await ctx.continue_as_new(goes_on, [1, value[1]])


@app.workflow
async def reviewed(ctx: Context, value: Any) -> Any:
    return (await ctx.review("review", value, reviewers=["ann"])).comment


def ran(name: str) -> Callable[[TestEnvironment, Any], Any]:
    """Takes the value as input, and gives it back as output."""

    def play(env: TestEnvironment, value: Any) -> Any:
        return env.start(app.newest(name), value, id=name).result()

    return play


def started(env: TestEnvironment, workflow: Any) -> Any:
    handle = env.start(workflow, id=workflow.name)
    env.run_until_idle()
    return handle


def as_input(env: TestEnvironment, value: Any) -> Any:
    handle = env.start(given, value, id="given")
    assert handle.result() == len(str(value))
    return value


def as_message(env: TestEnvironment, value: Any) -> Any:
    handle = started(env, hears)
    handle.send(VALUE, value)
    return handle.result()


def as_messages(env: TestEnvironment, value: Any) -> Any:
    handle = started(env, hears_many)
    for _ in range(3):
        handle.send(VALUE, value)
    return handle.result()


def as_first_message(env: TestEnvironment, value: Any) -> Any:
    return env.start_with_message(hears_too, value, VALUE, value, id="hears").result()


def as_sent(env: TestEnvironment, value: Any) -> Any:
    handle = started(env, hears)
    env.start(sends, value, id="sends").result()
    return handle.result()


def as_update(env: TestEnvironment, value: Any) -> Any:
    return started(env, answers).update(ASK, value)


def as_state(env: TestEnvironment, value: Any) -> Any:
    env.start(shows, value, id="shows").result()
    assert env.states("shows") == {"shown": value}
    return env.get_state("shows", StateKey("shown", Any))


def as_chunks(env: TestEnvironment, value: Any) -> Any:
    env.start(streams, value, id="streams").result()
    first, second = env.read_stream("streams", "talk")
    assert first == second
    return first


def as_event(env: TestEnvironment, value: Any) -> Any:
    handle = started(env, waits_for_event)
    env.publish_event(HAPPENED, value)
    return handle.result()


def as_undo(env: TestEnvironment, value: Any) -> Any:
    UNDONE.clear()
    env.start(undoes, value, id="undoes")
    env.advance("10m")
    if not UNDONE:
        return env.start(undoes, value, id="undoes").result()
    ((result, argument),) = UNDONE
    assert result == argument
    return argument


def as_callback(env: TestEnvironment, value: Any) -> Any:
    TOKENS.clear()
    handle = started(env, calls_back)
    env.complete_callback(TOKENS[-1], value)
    return handle.result()


def as_hook(env: TestEnvironment, value: Any) -> Any:
    handle = started(env, has_hook)
    env.call_webhook(env.get_state(handle.id, "url"), value)
    return handle.result()


def as_artifact(env: TestEnvironment, value: Any) -> Any:
    handle = env.start(reviewed, value, id="reviewed")
    env.run_until_idle()
    if env.get("reviewed").status in {"failed", "blocked"}:
        return handle.result()
    (review,) = env.reviews().reviews
    env.decide_review("reviewed", "review", "approved", reviewer="ann", comment="fine")
    assert handle.result() == "fine"
    return review.artifact


CHANNELS: dict[str, Callable[[TestEnvironment, Any], Any]] = {
    "input": as_input,
    "output": ran("gives"),
    "step result": ran("steps"),
    "ephemeral result": ran("ephemeral"),
    "message": as_message,
    "batch of messages": as_messages,
    "message that starts its run": as_first_message,
    "message from a run": as_sent,
    "update": as_update,
    "state": as_state,
    "stream": as_chunks,
    "event": as_event,
    "undo": as_undo,
    "remote step": ran("calls"),
    "child": ran("has_child"),
    "entity": ran("calls_entity"),
    "callback": as_callback,
    "webhook": as_hook,
    "loop state": ran("loops"),
    "continue as new": lambda env, value: env.start(goes_on, [0, value], id="goes_on").result(),
    "review": as_artifact,
}
