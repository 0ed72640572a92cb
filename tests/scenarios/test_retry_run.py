"""A run that failed or died goes on from the operation that failed; what a rollback has undone is done again."""

from typing import Any

import pytest
from pydantic import BaseModel, model_validator

from durable import (
    App,
    Branch,
    Break,
    Context,
    Continue,
    NonRetryableError,
    RollbackError,
    RunDead,
    RunEnded,
    RunFailed,
    RunNotFound,
    RunWasCancelled,
    Signal,
    Step,
    StepFailed,
    step_context,
)
from durable.testing import TestEnvironment, kill_process
from tests.scenarios.conftest import World

app = App("retries")
GO = Signal("go", str)
done: list[str] = []
keys: list[tuple[str, str]] = []
refused: list[bool] = []
deadly: list[bool] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()
    keys.clear()
    deadly.clear()
    refused[:] = [True]


def act(what: str) -> str:
    done.append(what)
    keys.append((what, step_context().idempotency_key))
    return what


def undo(result: str, what: str) -> None:
    done.append(f"undo {what}")
    keys.append((f"undo {what}", step_context().idempotency_key))


def maybe(what: str) -> str:
    act(what)
    if refused:
        raise NonRetryableError(f"{what} refused")
    return what


def flaky(what: str) -> str:
    act(what)
    if refused:
        raise ValueError(f"{what} failed")
    return what


@app.workflow
async def plain(ctx: Context) -> str:
    await ctx.step("first", act, "first")
    await ctx.step(Step("second", retries=1), flaky, "second")
    return await ctx.step("third", act, "third")


@app.workflow
async def with_message(ctx: Context) -> str:
    await ctx.step(Step("first").undo(undo), act, "first")
    message = await ctx.mailbox.next(GO)
    await ctx.step("second", maybe, "second")
    return message.body


@app.workflow
async def with_rollback(ctx: Context) -> str:
    await ctx.step("before", act, "before")
    await ctx.step(Step("flight").undo(undo), act, "flight")
    await ctx.step("note", act, "note")
    await ctx.step(Step("hotel").undo(undo), act, "hotel")
    await ctx.step("pay", maybe, "pay")
    return await ctx.step("end", act, "end")


@app.workflow
async def joined(ctx: Context) -> dict[str, str]:
    async def branch(ctx: Context, what: str) -> str:
        return await ctx.step("do", maybe if what == "bad" else act, what)

    await ctx.join("both", Branch("good", branch, "good"), Branch("bad", branch, "bad"))
    return {"ended": await ctx.step("end", act, "end")}


@app.workflow
async def wrapped(ctx: Context) -> str:
    await ctx.step("first", act, "first")
    try:
        await ctx.step("second", maybe, "second")
    except StepFailed as failed:
        raise RuntimeError("wrapped") from failed
    return "ended"


@app.workflow
async def looped(ctx: Context) -> int:
    async def body(ctx: Context, n: int) -> Break[int] | Continue[int]:
        await ctx.step("do", act, f"{n}")
        if n == 5:
            await ctx.step("last", maybe, "last")
            return Break(n)
        return Continue(n + 1)

    return await ctx.loop("numbers", body, state=0, history=2)


@app.workflow
async def buggy(ctx: Context) -> str:
    await ctx.step("first", act, "first")
    if refused:
        raise KeyError("a bug")
    return await ctx.step("second", act, "second")


class Poison(BaseModel):
    """Takes the process with it when it is read, while it is deadly."""

    n: int

    @model_validator(mode="after")
    def strike(self) -> "Poison":
        if deadly:
            kill_process()
        return self


@app.workflow
async def poisoned(ctx: Context, poison: Poison) -> str:
    await ctx.step("first", act, "first")
    await ctx.sleep("1h")
    return await ctx.step("second", act, f"second {poison.n}")


@app.workflow(timeout="2h")
async def timed(ctx: Context) -> str:
    await ctx.sleep("1h")
    await ctx.step("second", maybe, "second")
    await ctx.sleep("90m")
    return "ended"


@app.workflow
async def ephemeral(ctx: Context) -> str:
    token = await ctx.step(Step("token", ephemeral=True), act, "token")
    await ctx.step("second", maybe, "second")
    return token


@app.workflow
async def ok(ctx: Context) -> str:
    return await ctx.step("first", act, "first")


def failed(env: TestEnvironment, workflow: Any, *, message: str | None = None) -> Any:
    handle = env.start(workflow, id="r")
    if message is not None:
        handle.send(GO, message, id="m")
    with pytest.raises(RunFailed):
        handle.result()
    done.clear()
    refused.clear()
    return handle


def test_it_goes_on_from_the_step_that_failed_with_fresh_attempts(world: World) -> None:
    env = world(app)
    handle = failed(env, plain)
    refused.append(True)
    env.retry("r")
    with pytest.raises(RunFailed, match="second failed"):
        handle.result()
    assert done == ["second", "second"]
    refused.clear()
    env.retry("r")
    assert handle.result() == "third"
    assert done == ["second", "second", "second", "third"]
    assert [entry.key for entry in env.history("r")] == ["first", "second", "third"]
    assert env.get("r").error is None


def test_a_step_that_failed_keeps_its_idempotency_key(world: World) -> None:
    env = world(app)
    handle = failed(env, plain)
    env.retry("r")
    handle.result()
    assert len({key for what, key in keys if what == "second"}) == 1


def test_messages_consumed_there_return_to_the_mailbox(world: World) -> None:
    env = world(app)
    handle = failed(env, with_message, message="hello")
    env.retry("r")
    assert handle.result() == "hello"
    assert done == ["first", "second"]


def test_after_a_rollback_what_was_undone_is_done_again(world: World) -> None:
    env = world(app)
    handle = failed(env, with_rollback)
    env.retry("r")
    assert handle.result() == "end"
    assert done == ["flight", "note", "hotel", "pay", "end"]


def test_what_was_undone_is_done_again_under_another_idempotency_key(world: World) -> None:
    env = world(app)
    handle = failed(env, with_rollback)
    env.retry("r")
    handle.result()
    seen = {what: len({key for w, key in keys if w == what}) for what, _ in keys}
    assert (seen["flight"], seen["hotel"]) == (2, 2)
    assert (seen["note"], seen["pay"], seen["before"]) == (1, 1, 1)


def test_the_key_of_a_step_that_is_done_again_stays_over_its_attempts_and_turns(world: World) -> None:
    env = world(app)
    failed(env, with_rollback)
    keys.clear()
    flights = env.mock("flight").runs(lambda what: (act(what), kill_process())[0]).runs(act)
    env.retry("r")
    assert env.handle(with_rollback, "r").result() == "end"
    assert len(flights.calls) == 2
    assert len({key for what, key in keys if what == "flight"}) == 1


def test_it_may_fail_roll_back_and_be_retried_once_more(world: World) -> None:
    env = world(app)
    handle = failed(env, with_rollback)
    for _ in range(2):
        refused.append(True)
        done.clear()
        env.retry("r")
        with pytest.raises(RunFailed, match="pay refused"):
            handle.result()
        assert done == ["flight", "note", "hotel", "pay", "undo hotel", "undo flight"]
    refused.clear()
    env.retry("r")
    assert handle.result() == "end"
    assert len({key for what, key in keys if what == "flight"}) == 4
    assert len({key for what, key in keys if what == "undo flight"}) == 3


def test_failed_branches_of_a_join_are_done_again(world: World) -> None:
    env = world(app)
    handle = failed(env, joined)
    env.retry("r")
    assert handle.result() == {"ended": "end"}
    assert "bad" in done


def test_an_error_that_wraps_the_steps_error_leads_to_the_step(world: World) -> None:
    env = world(app)
    handle = failed(env, wrapped)
    assert env.get("r").failed_at == ("second",)
    env.retry("r")
    assert handle.result() == "ended"
    assert done == ["second"]


def test_a_loop_goes_on_at_its_progress(world: World) -> None:
    env = world(app)
    handle = failed(env, looped)
    env.retry("r")
    assert handle.result() == 5
    assert done == ["last"]


def test_after_a_bug_was_mended_the_code_goes_on_where_it_raised(world: World) -> None:
    env = world(app)
    handle = failed(env, buggy)
    env.retry("r")
    assert handle.result() == "second"
    assert done == ["second"]


def test_results_that_were_written_with_the_failure_are_not_lost(world: World) -> None:
    env = world(app)
    handle = failed(env, ephemeral)
    env.retry("r")
    assert handle.result() == "token"


def test_a_dead_run_goes_on(world: World) -> None:
    env = world(app)
    handle = env.start(poisoned, Poison(n=1), id="r")
    env.run_until_idle()
    deadly.append(True)
    with pytest.raises(RunDead):
        handle.result()
    deadly.clear()
    done.clear()
    env.retry("r")
    assert handle.result() == "second 1"
    assert done == ["second 1"]


def test_its_time_begins_anew(world: World) -> None:
    env = world(app)
    handle = failed(env, timed)
    env.advance(days=2)
    env.retry("r")
    assert handle.result() == "ended"


@pytest.mark.parametrize("how", ["completed", "cancelled"])
def test_a_run_that_completed_or_was_cancelled_is_refused(world: World, how: str) -> None:
    env = world(app)
    handle = env.start(ok, id="r")
    if how == "cancelled":
        env.terminate("r")
        with pytest.raises(RunWasCancelled):
            handle.result()
    else:
        handle.result()
    with pytest.raises(RunEnded, match=rf"has ended \({how}\)\. Only a run that failed or died can be retried"):
        env.retry("r")


def test_a_run_that_is_open_or_unknown(world: World) -> None:
    env = world(app)
    handle = env.start(poisoned, Poison(n=1), id="r")
    env.run_until_idle()
    env.retry("r")
    assert handle.result() == "second 1"
    with pytest.raises(RunNotFound):
        env.retry("nobody")


def test_a_run_that_raised_rollback_error_itself(world: World) -> None:
    selfish = App("selfish")

    @selfish.workflow
    async def quits(ctx: Context) -> str:
        await ctx.step(Step("flight").undo(undo), act, "flight")
        if refused:
            raise RollbackError("not now")
        return "flown"

    env = world(selfish)
    handle = failed(env, quits)
    env.retry("r")
    assert handle.result() == "flown"
    assert done == ["flight"]
