"""Troubles with cancellation that users of such systems have had, tried on this one."""

import contextlib
from functools import partial
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest

from durable import (
    App,
    Branch,
    ChildFailed,
    Context,
    Continue,
    RunCancelled,
    RunEnded,
    RunNotFound,
    RunWasCancelled,
    Signal,
    Step,
)
from durable.testing import TestEnvironment, assert_replays

GO = Signal("go", int)
app = App("cancellation")
lines: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    lines.clear()


def work(n: object = 0) -> Any:
    return n


@app.workflow
async def for_ever(ctx: Context) -> None:
    n = 0
    while True:
        n += 1
        with contextlib.suppress(Exception):
            await ctx.step(f"step-{n}", work, n)
            await ctx.sleep(1.5, name=f"pause-{n}")


@pytest.mark.parametrize("seed", range(40))
def test_CAN_01_a_cancellation_at_any_moment_is_not_swallowed(seed: int) -> None:
    env = TestEnvironment(app)
    chance = Random(seed)
    handle = env.start(for_ever, id="r")
    env.advance(seconds=chance.uniform(0, 6))
    env.faults.meanwhile(lambda: env.cancel("r"), at=chance.randint(1, 12))
    env.advance(seconds=20)
    assert not env.faults.pending
    with pytest.raises(RunWasCancelled):
        handle.result(timeout="1m")


async def naps(ctx: Context) -> None:
    await ctx.sleep("1h")


async def hears(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def leaf(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def races_and_starts(ctx: Context) -> int:
    await ctx.race("first", Branch("naps", naps), Branch("hears", hears))  # what loses is cancelled by code
    return await ctx.child(leaf, id="leaf")


def test_CAN_02_two_cancellations_at_once_are_one_wherever_they_meet() -> None:
    clean = TestEnvironment(app)
    clean.start(races_and_starts).send(GO, 1)
    clean.run_until_idle()
    for number in range(1, len(clean.calls) + 1):
        env = TestEnvironment(app)

        for _ in range(2):
            env.faults.meanwhile(partial(env.cancel, "r"), at=number)
        handle = env.start(races_and_starts, id="r")
        handle.send(GO, 1)
        with pytest.raises(RunWasCancelled):
            handle.result(timeout="10m")
        env.advance(minutes=5)
        with contextlib.suppress(RunNotFound):
            assert env.get("leaf").status == "cancelled"


def undo(result: object) -> None:
    lines.append("undone")


@app.workflow
async def undoable(ctx: Context) -> None:
    await ctx.step(Step("did").undo(undo), work)
    await ctx.wait_for_signal(GO)


@pytest.mark.parametrize("first", ["graceful", "compensate", "terminate"])
@pytest.mark.parametrize("second", ["graceful", "compensate", "terminate"])
def test_CAN_02_cancellations_of_any_two_kinds_come_to_one_end(first: Any, second: Any) -> None:
    clean = TestEnvironment(app)
    clean.start(undoable, id="r")
    clean.run_until_idle()
    clean.cancel("r", "compensate")
    clean.run_until_idle()
    for number in range(1, len(clean.calls) + 1):
        env = TestEnvironment(app)
        lines.clear()
        for mode in (first, second):
            env.faults.meanwhile(partial(cancel_if_open, env, mode), at=number)
        handle = env.start(undoable, id="r")
        env.run_until_idle()
        cancel_if_open(env, "compensate")
        with pytest.raises(RunWasCancelled):
            handle.result(timeout="10m")
        assert lines.count("undone") <= 1
        env.advance(minutes=5)
        assert env.repairs == 0


def cancel_if_open(env: TestEnvironment, mode: Any) -> None:
    with contextlib.suppress(RunEnded):
        env.cancel("r", mode)


async def starts_one(ctx: Context, n: int) -> Continue[int]:
    await ctx.start_child(leaf, id=f"leaf-{n}")
    await ctx.sleep(60)
    return Continue(n + 1)


@app.workflow
async def starts_in_a_loop(ctx: Context) -> None:
    await ctx.loop("rounds", starts_one, state=0, history=5)


def test_CAN_03_children_of_iterations_that_are_gone_end_with_the_run_too() -> None:
    env = TestEnvironment(app)
    env.start(starts_in_a_loop, id="top")
    env.advance(minutes=30)
    assert len(env.history("top")) < 30
    env.cancel("top")
    env.advance(minutes=5)
    runs = env.world.services.memory.runs
    assert len(runs) > 25
    assert {run.status for run in runs} == {"cancelled"}


@app.workflow
async def grandparent(ctx: Context, depth: int) -> None:
    if depth == 0:
        await ctx.sleep("30 days")
        return
    for n in range(3):
        await ctx.start_child(grandparent, depth - 1, id=f"{ctx.run_id}.{n}")
        await ctx.step(f"did-{n}", work)
    await ctx.sleep("30 days")


@pytest.mark.parametrize("number", [2, 5, 9, 14, 20, 30, 45, 70])
@pytest.mark.parametrize("mode", ["graceful", "terminate"])
def test_CAN_03_with_its_ancestor_every_descendant_ends_whatever_was_about_to_start(number: int, mode: Any) -> None:
    env = TestEnvironment(app)
    env.start(grandparent, 2, id="top")
    env.faults.meanwhile(lambda: env.cancel("top", mode), at=number)
    env.run_until_idle()
    env.advance(minutes=5)
    assert not env.faults.pending
    runs = env.world.services.memory.runs
    assert {run.status for run in runs} == {"cancelled"}, [(run.id, run.status) for run in runs]


@app.workflow
async def left_alone(ctx: Context) -> int:
    handle = await ctx.start_child(leaf, id="own", parent_close="abandon")
    return await handle.result()


def test_CAN_03_a_child_that_was_started_to_outlive_its_parent_does() -> None:
    env = TestEnvironment(app)
    env.start(left_alone, id="top")
    env.run_until_idle()
    env.cancel("top")
    env.advance(minutes=5)
    assert (env.get("top").status, env.get("own").status) == ("cancelled", "suspended")


@app.workflow
async def asks_child(ctx: Context) -> str:
    try:
        await ctx.child(leaf, id="leaf", parent_close="abandon")
    except RunCancelled:
        await ctx.step("clean", work)
        raise
    except ChildFailed:
        return "child failed"
    return "child ok"


def test_CAN_04_a_cancellation_is_no_result_of_what_was_waited_for() -> None:
    env = TestEnvironment(app)
    handle = env.start(asks_child, id="r")
    env.run_until_idle()
    handle.cancel()
    with pytest.raises(RunWasCancelled):
        handle.result()
    recorded = [(entry.location, entry.mark, entry.kind) for entry in env.history("r")]
    assert ("cancel", "^", "cancel") in recorded
    assert_replays(env.export("r"), app)
    with pytest.raises(RunEnded, match="cancelled"):  # so that no retry is handed the cancellation as an answer
        env.retry("r")
    assert env.world.executions["r", "clean"] == 1


@app.remote_step
def remote() -> str:
    lines.append("remote")
    return "late"


@app.workflow
async def sleeps_then_acts(ctx: Context) -> None:
    await ctx.sleep(10)
    lines.append("after the sleep")
    await ctx.step(lines.append, "step")


@app.workflow
async def calls_then_acts(ctx: Context) -> None:
    await ctx.call(remote)
    lines.append("after the call")


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
def test_CAN_05_not_one_line_runs_after_the_wait_and_a_late_answer_changes_nothing(mode: Any) -> None:
    env = TestEnvironment(app)
    env.start(calls_then_acts, id="call")
    while not env.world.services.steps.pending:
        env.world.deliver()
    (task,) = env.world.services.steps.receive(1)
    for run_id in ("sleep", "call"):
        if run_id == "sleep":
            env.start(sleeps_then_acts, id=run_id)
            env.run_until_idle()
        env.cancel(run_id, mode)
    env.run_until_idle()
    env.world.services.steps.change_visibility(task.receipt, 0.0)  # the worker begins only now
    env.advance(minutes=10)
    assert "after the sleep" not in lines
    assert "after the call" not in lines
    assert "step" not in lines
    assert {env.get("sleep").status, env.get("call").status} == {"cancelled"}


def test_CAN_06_cancelling_one_run_leaves_the_others_alone() -> None:
    env = TestEnvironment(app)
    handles = [env.start(leaf, id=f"r{n}") for n in range(10)]
    env.run_until_idle()
    env.cancel("r4")
    env.run_until_idle()
    assert [handle.status() for handle in handles].count("suspended") == 9
    assert env.get("r4").status == "cancelled"
    with pytest.raises(ValueError):
        env.cancel("")


@app.workflow
async def returns(ctx: Context) -> int:
    return 1


@app.workflow
async def raises(ctx: Context) -> None:
    raise ValueError("no")


def test_CAN_07_cancelling_an_ended_or_unknown_run_tells_its_real_status() -> None:
    env = TestEnvironment(app)
    for workflow, run_id in ((returns, "completed"), (raises, "failed")):
        env.start(workflow, id=run_id)
        env.run_until_idle()
        with pytest.raises(RunEnded, match=run_id):
            env.cancel(run_id)
        env.terminate(run_id)  # which asks for nothing where there is nothing to end
        assert env.get(run_id).status == run_id
    with pytest.raises(RunNotFound):
        env.cancel("never")


@app.workflow
async def cleans_up(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal(GO)
    finally:
        await ctx.step("undo-1", work)
        await ctx.sleep(90)
        await ctx.step("undo-2", work)


def test_CAN_08_clean_up_may_run_steps_and_sleep_and_the_run_says_what_it_is_doing() -> None:
    env = TestEnvironment(app)
    handle = env.start(cleans_up, id="r")
    env.run_until_idle()
    handle.cancel()
    env.run_until_idle()
    run = env.get("r")
    assert (run.status, run.cancel_requested) == ("suspended", "graceful")
    assert "sleep" in str(run.reason)
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert [entry.location for entry in env.history("r")] == ["cancel", "undo-1", "sleep", "undo-2"]


def test_CAN_09_the_run_record_is_the_truth_and_the_listing_is_made_of_it() -> None:
    """There is no second record to corrupt: the rows of a listing are an index over the run's own item."""
    env = TestEnvironment(app)
    handle = env.start(leaf, id="r")
    env.run_until_idle()
    assert [row.id for row in env.list(leaf, status="open").runs] == ["r"]
    handle.cancel()
    env.run_until_idle()
    assert [(row.id, row.outcome) for row in env.list(leaf).runs] == [("r", "cancelled")]
    assert not env.list(leaf, status="open").runs
