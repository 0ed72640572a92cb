"""A run that failed or died goes on from the operation that failed; what a rollback has undone is done again."""

from contextlib import suppress
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
    NotDone,
    Ok,
    RetryRefused,
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
verdicts: dict[str, Ok[str] | NotDone] = {}


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()
    keys.clear()
    deadly.clear()
    verdicts.clear()
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


def dies(what: str) -> str:
    act(what)
    if deadly:
        deadly.clear()
        kill_process()
    return what


def ask(what: str) -> Ok[str] | NotDone:
    if what not in verdicts:
        raise LookupError("nobody knows")
    return verdicts[what]


def undo_refused(result: str, what: str) -> None:
    act(f"undo {what}")
    if refused:
        raise NonRetryableError("undo refused")


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


ONCE = Step("once", at_most_once=True)


@app.workflow
async def wires(ctx: Context) -> str:
    await ctx.step(Step("hotel").undo(undo), act, "hotel")
    await ctx.step(ONCE, act, "wire")
    return await ctx.step("end", maybe, "end")


@app.workflow
async def wires_beside(ctx: Context) -> str:
    async def fails(ctx: Context) -> str:
        return await ctx.step("bad", maybe, "bad")

    async def pays(ctx: Context) -> str:
        await ctx.sleep("1h")
        return await ctx.step(ONCE, act, "wire")

    await ctx.join("both", Branch("fails", fails), Branch("pays", pays))
    return "ended"


@app.workflow
async def in_doubt(ctx: Context) -> str:
    return await ctx.step(ONCE.verify(ask), dies, "wire")


@app.workflow
async def in_doubt_for_good(ctx: Context) -> str:
    return await ctx.step(ONCE, dies, "wire")


@app.workflow
async def in_doubt_beside(ctx: Context) -> str:
    async def fails(ctx: Context) -> str:
        return await ctx.step("bad", maybe, "bad")

    async def pays(ctx: Context) -> str:
        await ctx.sleep("1h")
        return await ctx.step(ONCE.verify(ask), dies, "wire")

    await ctx.join("both", Branch("fails", fails), Branch("pays", pays))
    return "ended"


@app.workflow
async def no_longer_needed(ctx: Context) -> str:
    try:
        return await ctx.step("bad", maybe, "bad")
    except StepFailed:
        with suppress(StepFailed):
            await ctx.step(ONCE, dies, "wire")
        raise


@app.workflow
async def not_undone(ctx: Context) -> str:
    await ctx.step(Step("flight").undo(undo_refused), act, "flight")
    return await ctx.step("pay", maybe, "pay")


@app.workflow
async def not_undone_twice(ctx: Context) -> str:
    await ctx.step(Step("flight").undo(undo_refused), act, "flight")
    await ctx.step("pay", maybe, "pay")
    raise NonRetryableError("later")


@app.workflow
async def reads_in_a_loop(ctx: Context) -> list[str]:
    async def body(ctx: Context, seen: list[str]) -> Break[list[str]] | Continue[list[str]]:
        message = await ctx.mailbox.next(GO)
        seen = [*seen, message.body]
        return Break(seen) if len(seen) == 3 else Continue(seen)

    await ctx.step(Step("hotel").undo(undo), act, "hotel")
    seen = await ctx.loop("messages", body, state=[])
    await ctx.step("end", maybe, "end")
    return seen


@app.workflow
async def pays_in_a_loop(ctx: Context) -> int:
    async def body(ctx: Context, n: int) -> Break[int] | Continue[int]:
        await ctx.step(ONCE, act, f"{n}")
        await ctx.sleep("1h")
        return Break(n) if n == 3 else Continue(n + 1)

    await ctx.step(Step("hotel").undo(undo), act, "hotel")
    n = await ctx.loop("payments", body, state=0, history=1)
    await ctx.step("end", maybe, "end")
    return n


@app.workflow
async def many_failures(ctx: Context) -> str:
    async def branch(ctx: Context, n: int) -> str:
        await ctx.sleep(100 - n)
        return await ctx.step("do", maybe, f"{n}")

    await ctx.join("all", *[Branch(f"b{n:02}", branch, n) for n in range(12)])
    return "ended"


@app.workflow
async def impatient(ctx: Context) -> str:
    await ctx.step("first", act, "first")
    return await ctx.wait_for_signal(GO, timeout="1h")


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


@pytest.mark.parametrize(("workflow", "step"), [(wires, "once"), (wires_beside, "both/pays/once")])
def test_a_retry_that_would_do_a_finished_at_most_once_step_again_is_refused(
    world: World, workflow: Any, step: str
) -> None:
    env = world(app)
    handle = failed(env, workflow)
    before = env.get("r")
    with pytest.raises(
        RetryRefused, match=rf'run "r" cannot be retried: at-most-once step "{step}" .* Start a new run'
    ):
        env.retry("r")
    env.advance(days=1)
    assert env.get("r") == before
    assert done == []
    with pytest.raises(RunFailed, match="refused"):
        handle.result()


@pytest.mark.parametrize(("verdict", "again"), [(Ok("paid"), []), (NotDone(), ["wire"])])
def test_an_at_most_once_step_in_doubt_is_asked_about_again(
    world: World, verdict: Ok[str] | NotDone, again: list[str]
) -> None:
    env = world(app)
    deadly.append(True)
    handle = failed(env, in_doubt)
    env.retry("r")
    with pytest.raises(RunFailed, match="StepInterrupted"):
        handle.result()
    verdicts["wire"] = verdict
    env.retry("r")
    assert handle.result() == ("wire" if again else "paid")
    assert done == again


def test_an_at_most_once_step_in_doubt_that_nobody_can_tell_of_is_not_done_again(world: World) -> None:
    env = world(app)
    deadly.append(True)
    handle = failed(env, in_doubt_for_good)
    env.retry("r")
    with pytest.raises(RunFailed, match="StepInterrupted"):
        handle.result()
    assert done == []


def test_an_at_most_once_step_that_came_to_be_in_doubt_after_the_failure_is_asked_about(world: World) -> None:
    env = world(app)
    deadly.append(True)
    handle = failed(env, in_doubt_beside)
    verdicts["wire"] = Ok("paid")
    env.retry("r")
    assert handle.result() == "ended"
    assert done == ["bad"]


def test_an_at_most_once_step_in_doubt_that_the_code_does_not_come_to_again_is_left_alone(world: World) -> None:
    env = world(app)
    deadly.append(True)
    handle = failed(env, no_longer_needed)
    env.retry("r")
    assert handle.result() == "bad"
    assert done == ["bad"]


def test_a_step_whose_undo_failed_is_not_done_again(world: World) -> None:
    env = world(app)
    handle = failed(env, not_undone)
    env.retry("r")
    assert handle.result() == "pay"
    assert done == ["pay"]


def test_an_undo_that_failed_is_tried_again_by_the_next_rollback(world: World) -> None:
    env = world(app)
    handle = failed(env, not_undone_twice)
    env.retry("r")
    with pytest.raises(RunFailed, match="later"):
        handle.result()
    assert done == ["pay", "undo flight"]
    assert "NOT UNDONE" not in (env.get("r").reason or "")


def test_a_retry_that_would_lose_messages_of_iterations_that_are_gone_is_refused(world: World) -> None:
    env = world(app)
    handle = env.start(reads_in_a_loop, id="r")
    for n in range(3):
        env.run_until_idle()
        handle.send(GO, f"{n}", id=f"m{n}")
    with pytest.raises(RunFailed):
        handle.result()
    with pytest.raises(RetryRefused, match=r'iterations of loop "messages" that are gone.* Start a new run'):
        env.retry("r")
    assert env.get("r").status == "failed"


def test_at_most_once_steps_of_iterations_that_are_gone_are_not_done_again(world: World) -> None:
    env = world(app)
    failed(env, pays_in_a_loop)
    with pytest.raises(RetryRefused, match='loop "payments"'):
        env.retry("r")


def test_of_many_failures_the_earliest_count(world: World) -> None:
    env = world(app)
    handle = failed(env, many_failures)
    assert env.get("r").failed_at[0] == "all/b11/do"
    env.retry("r")
    assert handle.result() == "ended"


@pytest.mark.parametrize("answered", [True, False])
def test_a_deadline_that_ended_the_run_begins_anew(world: World, answered: bool) -> None:
    env = world(app)
    handle = failed(env, impatient)
    env.advance(days=1)
    retried_at = env.now
    env.retry("r")
    env.run_until_idle()
    assert env.get("r").status == "suspended"
    env.advance(minutes=59)
    if answered:
        handle.send(GO, "late")
        assert handle.result() == "late"
        return
    assert env.get("r").status == "suspended"
    with pytest.raises(RunFailed, match="deadline"):
        handle.result()
    assert (env.now - retried_at).total_seconds() >= 3600
    assert done == []
