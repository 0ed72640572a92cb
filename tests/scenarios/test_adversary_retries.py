"""An operator's retry finds children, calls, events and entities in whatever state: nothing hangs, nothing is forgotten."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from durable import (
    App,
    Backoff,
    Break,
    Call,
    ChildFailed,
    Client,
    Context,
    Continue,
    Event,
    NonRetryableError,
    RunFailed,
    Signal,
    Step,
    StoreUnavailable,
)
from durable.model.run import Run
from durable.testing import TestEnvironment
from durable.testing.interception import intercepted

app = App("retries")
GO = Signal("go", str)
PAID = Event("paid", int)
mood: dict[str, Any] = {}


def fail_once() -> str:
    if mood.get("bad"):
        raise NonRetryableError("bad mood")
    return "done"


def number() -> int:
    mood["numbers"] = mood.get("numbers", 0) + 1
    return int(mood["numbers"])


def undo(result: object) -> None:
    """Takes it back."""


@pytest.fixture(autouse=True)
def _bad_mood() -> None:
    mood.clear()
    mood["bad"] = True


@app.workflow
async def picky(ctx: Context) -> str:
    return await ctx.step(fail_once)


@app.workflow
async def waiting(ctx: Context, name: str) -> str:
    return f"{name} {await ctx.wait_for_signal(GO)}"


@app.workflow
async def double(ctx: Context, n: int) -> int:
    return 2 * n


@app.workflow
async def beside_a_child(ctx: Context) -> str:
    child, _ = await asyncio.gather(ctx.child(waiting, "w"), ctx.step(fail_once))
    return child


@app.workflow
async def beside_a_handle(ctx: Context) -> str:
    handle = await ctx.start_child(waiting, "w")
    await ctx.step(fail_once)
    return await handle.result()


def runs_of(env: TestEnvironment, workflow: str) -> list[Run]:
    return [env.get(row.id) for row in env.list(workflow=workflow).runs]


def sent_to_the_open_child(env: TestEnvironment) -> str:
    env.run_until_idle()
    (open_child,) = [run for run in runs_of(env, "waiting") if run.status not in {"cancelled", "completed"}]
    env.send(open_child.id, GO, "ahead")
    return open_child.id


@pytest.mark.parametrize("workflow", [beside_a_child, beside_a_handle])
def test_a_child_that_ended_with_its_failed_parent_is_started_anew(workflow: Any) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(workflow, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        env.advance(minutes=5)
        mood["bad"] = False
        env.retry("p")
        sent_to_the_open_child(env)
        assert handle.result() == "w ahead"


@pytest.mark.parametrize("workflow", [beside_a_child, beside_a_handle])
def test_a_child_that_was_started_anew_ends_with_its_parent(workflow: Any) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(workflow, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        env.advance(minutes=5)
        mood["bad"] = False
        env.retry("p")
        env.run_until_idle()
        env.cancel("p")
        env.advance(minutes=5)
        assert {run.status for run in runs_of(env, "waiting")} == {"cancelled"}


@app.workflow
async def another_input(ctx: Context) -> int:
    n = await ctx.step(Step("number").undo(undo), number)
    result = await ctx.child(double, n)
    await ctx.step(fail_once)
    return result


@app.workflow
async def another_input_by_handle(ctx: Context) -> int:
    n = await ctx.step(Step("number").undo(undo), number)
    handle = await ctx.start_child(double, n)
    result = await handle.result()
    await ctx.step(fail_once)
    return result


@pytest.mark.parametrize("workflow", [another_input, another_input_by_handle])
def test_a_child_of_another_input_is_not_adopted(workflow: Any) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(workflow, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        mood["bad"] = False
        env.retry("p")
        assert handle.result() == 4


@app.workflow
async def catches(ctx: Context) -> str:
    await ctx.step(Step("number").undo(undo), number)
    try:
        await ctx.child(picky)
    except ChildFailed:
        await ctx.step("then", fail_once)
        return "failed"
    return "well"


@app.workflow
async def catches_by_handle(ctx: Context) -> str:
    await ctx.step(Step("number").undo(undo), number)
    handle = await ctx.start_child(picky)
    try:
        await handle.result()
    except ChildFailed:
        await ctx.step("then", fail_once)
        return "failed"
    return "well"


@pytest.mark.parametrize("workflow", [catches, catches_by_handle])
def test_a_failure_from_before_a_retry_is_no_answer_to_what_is_started_after_it(workflow: Any) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(workflow, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        mood["bad"] = False
        env.retry("p")
        assert handle.result() == "well"


# A retry that is cut short


@app.entity
class Till(BaseModel):
    taken: int = 0

    def take(self, n: int) -> int:
        if mood.get("bad"):
            raise NonRetryableError("closed")
        self.taken += n
        return self.taken


def submit(token: str) -> None:
    mood["token"] = token


@app.remote_step(retries=1)
def remote() -> str:
    if mood.get("bad"):
        raise ValueError("bad mood")
    return "done"


@app.workflow
async def child_failed(ctx: Context) -> str:
    return await ctx.child(picky)


@app.workflow
async def handle_failed(ctx: Context) -> str:
    return await (await ctx.start_child(picky)).result()


@app.workflow
async def entity_failed(ctx: Context) -> str:
    await ctx.entity(Till, "t").call(Till.take, 1)
    return "done"


@app.workflow
async def call_failed(ctx: Context) -> str:
    return await ctx.call(Call(backoff=Backoff(base="20s")), remote)


@app.workflow
async def callback_failed(ctx: Context) -> str:
    return await ctx.callback("cb", submit, str, timeout="30 days")


@app.workflow
async def event_open(ctx: Context) -> str:
    await asyncio.gather(ctx.wait_for_event(PAID), ctx.step(fail_once))
    return "done"


@app.workflow
async def child_open(ctx: Context) -> str:
    await asyncio.gather(ctx.child(waiting, "w", id="c"), ctx.step(fail_once))
    return "done"


class DiesAt:
    """Lets so many port calls of the client pass, the last one with or without its effect, and none after."""

    def __init__(self, number: int, *, after: bool) -> None:
        self.left = number
        self.after = after

    def __call__(self, name: str, perform: Callable[[], Any], /) -> Any:
        self.left -= 1
        if self.left > 0:
            return perform()
        if self.left == 0 and self.after:
            perform()
        raise StoreUnavailable(f"{name} did not answer")


@pytest.mark.parametrize(
    "workflow",
    [child_failed, handle_failed, entity_failed, call_failed, event_open, child_open],
    ids=lambda it: it.name,
)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 16))
def test_dying_at_any_call_of_a_retry(workflow: Any, number: int, after: bool) -> None:
    env = TestEnvironment(app)
    handle = env.start(workflow, id="r")
    env.run_until_idle()
    if workflow is callback_failed:
        env.fail_callback(mood["token"], "no")
    with pytest.raises(RunFailed):
        handle.result()
    env.advance(minutes=2)
    mood["bad"] = False
    client = Client(app, intercepted(env.ports, DiesAt(number, after=after)))
    try:
        client.retry("r")
    except StoreUnavailable:
        env.advance(minutes=5)
    if env.get("r").status == "failed":
        env.retry("r")
    env.run_until_idle()
    env.publish_event(PAID, 1)
    for run in runs_of(env, "waiting"):
        if run.status == "suspended":
            env.send(run.id, GO, "ahead")
    if workflow is callback_failed:
        env.complete_callback(mood["token"], "done")
    assert handle.result() == "done"


@app.workflow(timeout="1m")
async def impatient(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def waits_for_the_impatient(ctx: Context, close: Any) -> str:
    handle = await ctx.start_child(impatient, parent_close=close)
    return await handle.result()


@pytest.mark.parametrize("close", ["cancel", "abandon"])
def test_a_child_of_a_handle_that_cannot_be_retried_leaves_nobody_waiting(close: str) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(waits_for_the_impatient, close, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        env.retry("p")
        with pytest.raises(RunFailed, match="timed out"):
            handle.result()


@app.workflow
async def keeps_its_handle(ctx: Context) -> str:
    handle = await ctx.start_child(waiting, "w")
    await ctx.step(fail_once)
    await handle.cancel()
    try:
        return await handle.result()
    except ChildFailed as failed:
        return failed.status


def test_the_handle_of_a_child_that_was_started_anew_cancels_that() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(keeps_its_handle, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        env.advance(minutes=5)
        mood["bad"] = False
        env.retry("p")
        assert handle.result() == "cancelled"
        assert {run.status for run in runs_of(env, "waiting")} == {"cancelled"}


def test_a_child_that_was_retried_in_vain_before_its_parent_is_no_trouble() -> None:
    for workflow in (child_failed, handle_failed):
        mood["bad"] = True
        with TestEnvironment(app) as env:
            handle = env.start(workflow, id="p")
            with pytest.raises(RunFailed):
                handle.result()
            env.retry("p.picky")
            env.run_until_idle()
            assert env.get("p.picky").status == "failed"
            mood["bad"] = False
            env.retry("p")
            assert handle.result() == "done"


def test_retries_may_follow_one_another() -> None:
    with TestEnvironment(app) as env:
        for workflow in (beside_a_child, beside_a_handle):
            mood["bad"] = True
            handle = env.start(workflow, id=workflow.name)
            for _ in range(3):
                with pytest.raises(RunFailed):
                    handle.result()
                env.advance(minutes=5)
                env.retry(handle.id)
            with pytest.raises(RunFailed):
                handle.result()
            mood["bad"] = False
            env.advance(minutes=5)
            env.retry(handle.id)
            child = sent_to_the_open_child(env)
            assert handle.result() == "w ahead"
            assert child in env.children(handle.id)


@pytest.mark.parametrize("workflow", [beside_a_child, beside_a_handle, event_open], ids=lambda it: it.name)
@pytest.mark.parametrize("how", ["before", "after", "freeze"])
def test_dying_anywhere_in_the_turns_after_a_retry(workflow: Any, how: str) -> None:
    number = 0
    while True:
        number += 1
        mood["bad"] = True
        env = TestEnvironment(app)
        handle = env.start(workflow, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        env.advance(minutes=5)
        mood["bad"] = False
        env.retry("p")
        if how == "freeze":
            env.faults.freeze("10m", at=number)
        else:
            env.crash_at(number, after=how == "after")
        env.advance(minutes=15)
        over = env.faults.pending
        env.publish_event(PAID, 1)
        open_children = [run for run in runs_of(env, "waiting") if run.status not in {"cancelled", "completed"}]
        assert len(open_children) == (workflow is not event_open)
        for child in open_children:
            env.send(child.id, GO, "ahead")
        assert handle.result() == ("done" if workflow is event_open else "w ahead")
        if over:
            break
    assert number > 5


@app.workflow
async def one_after_another(ctx: Context) -> str:
    async def body(ctx: Context, n: int) -> Continue[int] | Break[str]:
        handle = await ctx.start_child(waiting, "w", id=f"k{n}")
        await ctx.step(fail_once) if n == 2 else None
        await handle.cancel()
        return Continue(n + 1) if n < 3 else Break("done")

    return await ctx.loop("l", body, state=0, history=1)


def test_a_child_that_the_code_had_cancelled_or_can_not_reach_any_more_is_not_started_anew() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(one_after_another, id="p")
        with pytest.raises(RunFailed):
            handle.result()
        env.advance(minutes=5)
        mood["bad"] = False
        env.retry("p")
        assert handle.result() == "done"
        assert sum(run.id.startswith("k2~r") for run in runs_of(env, "waiting")) == 1
        assert len(runs_of(env, "waiting")) == 5


@app.workflow
async def waits_for_itself(ctx: Context, n: int) -> str:
    return await ctx.child(waits_for_itself, n, id="me")


def test_a_run_does_not_wait_for_itself() -> None:
    with TestEnvironment(app) as env, pytest.raises(RunFailed, match="RunAlreadyExists"):
        env.start(waits_for_itself, 1, id="me").result()


# Attempts that were forgotten in part


def test_a_call_goes_on_of_whose_attempts_only_the_failure_is_left() -> None:
    mood["bad"] = True
    with TestEnvironment(app) as env:
        handle = env.start(call_failed, id="r")
        env.run_until_idle()
        (opened,) = [entry for entry in env.history("r") if entry.mark == "?1"]
        assert [entry.mark for entry in env.history("r")] == ["?1", "@1"]
        env.ports.store.delete_entries("r", [opened.key], epoch=opened.epoch)
        env.restart()
        mood["bad"] = False
        assert handle.result() == "done"
