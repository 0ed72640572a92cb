"""Workflows that pass a secret through every operation that stores or sends something."""

from functools import cache
from typing import Any

from pydantic import BaseModel

from durable import (
    App,
    Branch,
    Break,
    Call,
    Context,
    Continue,
    Event,
    Failed,
    RunFailed,
    Signal,
    StateKey,
    Step,
    Update,
    step_context,
)
from durable.testing import TestEnvironment

SECRET = "Ada-Lovelace-4111"
TOLD = Signal("told", dict)
ASKED = Update("asked", str, str)
HAPPENED = Event("happened", dict)
TOKENS: list[str] = []


class Secret(BaseModel):
    text: str


class Safe(BaseModel):
    things: list[str] = []

    def keep(self, thing: str) -> str:
        self.things.append(thing)
        return f"kept {thing}"


def step(secret: Secret) -> Secret:
    step_context().stream("talk").append(secret.text)
    return secret


def undo(result: Secret, secret: Secret) -> None:
    assert result == secret


def failing(secret: Secret) -> None:
    raise ValueError(f"not good: {secret.text}")


def submit(token: str) -> None:
    TOKENS.append(token)


def elsewhere(secret: Secret) -> str:
    step_context().heartbeat(secret.text)
    return secret.text * 3


def made(codec: Any) -> App:
    """The app with these workflows, with this codec."""
    app = _made()
    app.codec = codec
    return app


@cache
def _made() -> App:
    app = App("secrets")
    app.entity(Safe)
    app.queue("slow", concurrency=1)
    remote = app.remote_step(queue="slow")(elsewhere)

    @app.workflow
    async def child(ctx: Context, secret: Secret) -> Secret:
        return secret

    @app.workflow
    async def collects(ctx: Context, happened: dict[str, str]) -> str:
        return happened["text"]

    app.on_event(HAPPENED, collects)

    @app.workflow
    async def everything(ctx: Context, secret: Secret) -> str:
        await ctx.step(Step(retries=0).undo(undo), step, secret)
        ctx.stream("talk").append(secret.text)
        ctx.set_state(StateKey("state", str), secret.text)
        message = await ctx.mailbox.next(TOLD)
        assert message.body == {"text": SECRET}
        request = await ctx.updates.next(ASKED)
        request.respond(f"{request.arg} {secret.text}")
        await ctx.join("two", Branch("a", ctx_call, remote, secret), Branch("b", ctx_call, remote, secret))
        await ctx.child(child, secret)
        await ctx.entity(Safe, "s").call(Safe.keep, secret.text)
        await ctx.callback("outside", submit, dict, timeout="1 day")
        hook = ctx.webhook("hook")
        ctx.set_state("url", hook.url)
        await hook.wait(dict, timeout="1 day")
        await ctx.review("review", {"text": secret.text}, reviewers=["ann"])
        await ctx.wait_for_event(HAPPENED, match={"text": secret.text}, timeout="1 day")
        blob = await ctx.offload("blob", lambda: [SECRET] * 1000)
        await ctx.mailbox.send("other", TOLD, {"text": secret.text})
        await ctx.loop("loop", turns, state=secret, history=1)
        outcome = await ctx.try_step(Step("fails", retries=1), failing, secret)
        assert isinstance(outcome, Failed)
        return f"{secret.text} {blob.size} {outcome.error.message}"

    @app.workflow
    async def fails(ctx: Context, secret: Secret) -> None:
        await ctx.step(Step(retries=0).undo(undo), step, secret)
        await ctx.sleep("1m")
        raise ValueError(secret.text)

    @app.workflow
    async def again(ctx: Context, secret: Secret) -> str:
        if len(secret.text) > 2 * len(SECRET):
            return (await ctx.mailbox.next(TOLD)).body["text"]
        await ctx.sleep("1m")
        return await ctx.continue_as_new(again, Secret(text=secret.text * 3))

    return app


async def ctx_call(ctx: Context, remote: Any, secret: Secret) -> str:
    return await ctx.call(Call(timeout="1m"), remote, secret)


async def turns(ctx: Context, state: Secret) -> Continue[Secret] | Break[str]:
    if len(state.text) > 3 * len(SECRET):
        return Break(state.text)
    return Continue(Secret(text=state.text + SECRET))


def play(env: TestEnvironment) -> None:
    """Runs all of them to their ends."""
    app, secret = env.app, Secret(text=SECRET)
    TOKENS.clear()
    everything, fails, again = (app.newest(name) for name in ("everything", "fails", "again"))
    handle = env.start(everything, secret, id="e", tags=["plain"])
    env.run_until_idle()
    env.send("e", TOLD, {"text": SECRET})
    assert env.update("e", ASKED, SECRET) == f"{SECRET} {SECRET}"
    env.advance("1m")
    (token,) = TOKENS
    env.complete_callback(token, {"text": SECRET})
    env.run_until_idle()
    env.call_webhook(env.get_state("e", "url"), {"text": SECRET})
    env.run_until_idle()
    env.decide_review("e", "review", "approved", reviewer="ann", comment=SECRET)
    env.run_until_idle()
    env.publish_event(HAPPENED, {"text": SECRET}, buffer="1h", id="ev")
    assert handle.result().startswith(f"{SECRET} ")
    assert SECRET in handle.result()
    assert env.read_stream("e", "talk") == [SECRET, SECRET]
    assert env.result("evt:ev:collects") == SECRET
    assert env.entity(Safe, "s").state().things == [SECRET]
    try:
        env.start(fails, secret, id="f").result()
    except RunFailed as error:
        assert SECRET in str(error)  # noqa: PT017 - the rest of the story goes on
    env.start(again, secret, id="a")
    env.run_until_idle()
    env.send("a", TOLD, {"text": SECRET})
    env.advance("5m")
    assert env.result("a") == SECRET
