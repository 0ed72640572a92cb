"""Troubles with retries and timeouts that users of such systems have had, tried on this one."""

import threading
from itertools import pairwise
from typing import Any

import pytest

from durable import (
    App,
    Backoff,
    Call,
    Context,
    RunFailed,
    Signal,
    Step,
    StepFailed,
    StepInterrupted,
    WaitTimeout,
    step_context,
)
from durable.engine.orchestrator import Delivery
from durable.model.limits import BLOB_BYTES
from durable.testing import TestEnvironment, kill_process
from durable.testing.containers import Container

APPROVE = Signal("approve", str)
app = App("retries")


def work() -> Any:
    return "worked"


def more() -> str:
    return "more"


@app.workflow
async def one_step(ctx: Context) -> Any:
    return await ctx.step(work)


@pytest.mark.parametrize(
    ("result", "told"),
    [("x" * BLOB_BYTES, r"work.*67,108,866 bytes.*67,108,864"), (threading.Lock(), r"work.*lock")],
    ids=["too-large", "no-data"],
)
def test_RTY_01_a_result_that_can_never_be_stored_fails_at_once_with_step_size_and_limit(
    result: object, told: str
) -> None:
    env = TestEnvironment(app)
    mock = env.mock(work).returns(result)
    with pytest.raises(RunFailed, match=told):
        env.start(one_step, id="r").result()
    assert len(mock.calls) == 1
    assert env.calls.count("store.acquire") == 1


def test_RTY_02_the_default_is_four_attempts_and_the_history_says_so() -> None:
    env = TestEnvironment(app)
    mock = env.mock(work).raises(ConnectionError)
    with pytest.raises(RunFailed, match="after 4 attempts"):
        env.start(one_step, id="r").result()
    assert len(mock.calls) == 4
    assert env.history("r")[-1].attempts == 4


@app.workflow
async def once(ctx: Context) -> str:
    try:
        return await ctx.step(Step("pay", at_most_once=True), work)
    except StepInterrupted as interrupted:
        return f"{interrupted.name} may have run: {interrupted.idempotency_key}"


@app.workflow
async def once_uncaught(ctx: Context) -> str:
    return await ctx.step(Step("pay", at_most_once=True), work)


def test_RTY_03_RTY_06_an_interrupted_at_most_once_step_is_typed_named_and_left_to_the_workflow() -> None:
    env = TestEnvironment(app)
    mock = env.mock(work).runs(kill_process)
    assert str(env.start(once).result()).startswith("pay may have run: ")
    with pytest.raises(RunFailed, match="StepInterrupted"):
        env.start(once_uncaught).result()
    assert len(mock.calls) == 2, "one for each run"


def key_of_attempt() -> str:
    context = step_context()
    if context.attempt == 1:
        raise ConnectionError
    return context.idempotency_key


@app.workflow
async def keyed(ctx: Context) -> list[str]:
    return [await ctx.step("a", key_of_attempt), await ctx.step("b", key_of_attempt)]


def test_RTY_06_a_step_is_offered_one_key_for_all_its_attempts() -> None:
    env = TestEnvironment(app)
    keys: list[str] = []
    env.mock("a").runs(lambda: keys.append(step_context().idempotency_key) or kill_process())
    with pytest.raises(RunFailed):
        env.start(keyed, id="r").result()
    assert len(keys) == 4
    assert len(set(keys)) == 1
    first, second = TestEnvironment(app).start(keyed, id="r").result()
    assert first == keys[0] != second


def test_RTY_04_the_run_of_a_killed_invocation_is_taken_over_when_its_lease_is_past() -> None:
    env = TestEnvironment(app)
    env.mock(work).runs(kill_process).returns("ok")
    before = env.now
    handle = env.start(one_step, id="r")
    env.run_until_idle()
    env.advance(seconds=1)
    assert env.get("r").status != "completed"
    assert handle.result() == "ok"
    assert (env.now - before).total_seconds() <= 180, "an invocation's 120 s, and what a queue hides it longer"


@pytest.mark.parametrize("remaining", [0.0, 0.001, -1.0])
def test_RTY_05_with_no_time_left_no_step_is_begun_and_the_run_is_handed_over(remaining: float) -> None:
    env = TestEnvironment(app)
    mock = env.mock(work).returns("ok")
    handle = env.start(one_step, id="r")
    world = env.world
    (received,) = world.services.runs.receive()
    container = world._start(Container)
    delivery = Delivery(
        id=received.receipt, body=received.body, arrived_at=received.sent_at, sequence=received.sequence
    )
    container.process([delivery], remaining=remaining)
    begun = len(mock.calls)
    world.services.runs.change_visibility(received.receipt, 0.0)
    assert handle.result() == "ok"
    assert begun == 0
    assert len(mock.calls) == 1


@app.workflow
async def impatient(ctx: Context) -> list[Any]:
    first = await ctx.step(Step(timeout=0.05, retry_on_timeout=True), work)
    return [first, await ctx.step(more)]


def test_RTY_07_the_late_result_of_a_timed_out_attempt_is_dropped_and_the_run_moves_on_once() -> None:
    env = TestEnvironment(app)
    release = threading.Event()
    env.mock(work).runs(lambda: f"late {release.wait(5)}").returns("in time")
    second = env.mock(more).runs(lambda: (release.set(), "more")[1])
    assert env.start(impatient, id="r").result() == ["in time", "more"]
    assert len(second.calls) == 1
    assert [entry.value for entry in env.history("r")][-2:] == ['"in time"', '"more"']


@app.workflow
async def backing_off(ctx: Context) -> Any:
    return await ctx.step(Step(retries=5, backoff=Backoff(2)), work)


@pytest.mark.parametrize("meddled", [False, True])
def test_RTY_08_the_gaps_between_attempts_are_the_backoff_whatever_the_queue_redelivers(meddled: bool) -> None:
    env = TestEnvironment(app)
    at: list[float] = []

    def attempt() -> str:
        at.append(env.now.timestamp())
        if len(at) <= 4:
            raise ConnectionError
        return "ok"

    env.mock(work).runs(attempt)
    handle = env.start(backing_off, id="r")
    for _ in range(60 if meddled else 0):
        env.faults.duplicate_next()
        env.resume("r") if env.get("r").status == "suspended" else None
        env.advance(seconds=0.5)
    assert handle.result() == "ok"
    assert len(at) == 5
    assert all(later - earlier >= gap for (earlier, later), gap in zip(pairwise(at), (2, 4, 8, 16), strict=True))


@app.workflow
async def three_steps(ctx: Context) -> Any:
    for name in ("one", "two", "three"):
        await ctx.step(name, work)
    return "end"


@pytest.mark.parametrize("after", [False, True])
def test_RTY_09_no_user_code_runs_after_a_checkpoint_that_failed(after: bool) -> None:
    env = TestEnvironment(app)
    third = env.mock("three").returns("ok")
    env.faults.fail_next_call("store.put_entry", after=after)
    handle = env.start(three_steps, id="r")
    env.world.deliver()
    assert third.calls == []
    assert env.get("r").status in {"pending", "suspended"}
    assert handle.result() == "end"
    assert len(third.calls) == 1


def test_RTY_10_whoever_loses_the_run_goes_quietly_and_nobody_hears_of_it() -> None:
    calls = TestEnvironment(app)
    calls.start(three_steps).result()
    for number in range(2, len(calls.calls) + 1):
        env = TestEnvironment(app)
        env.faults.freeze(300, at=number)
        assert env.start(three_steps, id="r").result() == "end"
        assert env.get("r").error is None
        assert [entry.location for entry in env.history("r") if not entry.mark] == ["one", "two", "three"]


async def ask(ctx: Context) -> str:
    await ctx.step("mail", work)
    return await ctx.wait_for_signal(APPROVE, timeout="24h")


@app.workflow
async def asks_thrice(ctx: Context) -> str:
    try:
        return await ctx.retrying("approval", ask, retries=2, backoff=Backoff("1h", max="1 day"))
    except WaitTimeout:
        return "nobody"


def test_RTY_11_a_block_of_operations_is_tried_again_with_places_of_its_own() -> None:
    env = TestEnvironment(app)
    mail = env.mock("mail").returns("sent")
    assert env.start(asks_thrice, id="r").result() == "nobody"
    assert len(mail.calls) == 3
    handle = env.start(asks_thrice, id="second")
    env.advance(hours=26)
    handle.send(APPROVE, "yes")
    assert handle.result() == "yes"
    assert "approval[1]/mail" in [entry.location for entry in env.history("second")]


@app.remote_step(heartbeat="1m")
def watched() -> str:
    return "ok"


@app.remote_step
def unwatched() -> str:
    return "ok"


@app.workflow
async def calls(ctx: Context, which: str) -> str:
    try:
        return await ctx.call(Call(retries=0), watched if which == "watched" else unwatched)
    except StepFailed as failed:
        return failed.kind


@pytest.mark.parametrize(("which", "minutes"), [("watched", 3), ("unwatched", 7)])
def test_RTY_12_a_worker_that_dies_is_noticed_in_minutes_with_and_without_heartbeats(which: str, minutes: int) -> None:
    env = TestEnvironment(app)
    env.mock(watched).runs(kill_process)
    env.mock(unwatched).runs(kill_process)
    handle = env.start(calls, which, id="r")
    before = env.now
    assert handle.result() == "timeout"
    assert (env.now - before).total_seconds() <= minutes * 60


def test_RTY_12_a_remote_step_nobody_picks_up_has_a_deadline_by_default() -> None:
    env = TestEnvironment(app)
    handle = env.start(calls, "unwatched", id="r")
    while not env.world.services.steps.pending:
        env.world.deliver()
    env.faults.drop_next()
    env.world.deliver()
    before = env.now
    assert handle.result() == "timeout"
    assert (env.now - before).total_seconds() <= 26 * 3600
