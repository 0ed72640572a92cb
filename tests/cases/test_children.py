"""Troubles with children that users of such systems have had, tried on this one."""

import asyncio
import contextlib
from typing import Any

import pytest

from durable import App, Branch, ChildFailed, Context, RunFailed, RunNotFound, Signal, Step
from durable.testing import TestEnvironment, kill_process

GO = Signal("go", int)
app = App("children")


def work(n: object = 0) -> Any:
    return n


@app.workflow
async def slow(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


@pytest.mark.parametrize(("close", "status"), [("cancel", "cancelled"), ("abandon", "suspended")])
def test_CHD_01_a_parent_fails_at_once_and_its_child_follows_its_policy(close: str, status: str) -> None:
    env = TestEnvironment(app)

    @app.workflow(name=f"parent-{close}")
    async def parent(ctx: Context) -> None:
        await ctx.start_child(slow, id="child", parent_close=close)  # type: ignore[arg-type]
        await ctx.step(Step("fail", retries=0), work)

    env.mock("fail").raises(ValueError("no"))
    env.start(parent, id="r")
    env.run_until_idle()
    assert env.get("r").status == "failed"
    assert env.get("child").status == status


class Odd:
    pass


@app.workflow
async def raises(ctx: Context) -> None:
    raise ValueError("at once")


@app.workflow
async def step_dies(ctx: Context) -> Any:
    return await ctx.step(work)


@app.workflow
async def asks(ctx: Context, which: str) -> str:
    try:
        await ctx.child({"raises": raises, "dies": step_dies}[which], id="c")
    except ChildFailed as failed:
        return f"{failed.run_id} {failed.status} {failed.error}"
    return "completed"


def test_CHD_02_every_end_of_a_child_reaches_its_parent_with_id_type_and_message() -> None:
    env = TestEnvironment(app)
    assert env.start(asks, "raises").result() == "c failed ValueError: at once"
    env = TestEnvironment(app)
    env.mock(work).runs(kill_process)
    told = env.start(asks, "dies").result()
    assert told.startswith("c failed StepFailed")
    assert "AttemptInterrupted" in told


def test_CHD_02_a_child_whose_code_is_missing_or_whose_result_cannot_be_stored_is_blocked_by_name_not_lost() -> None:
    """Neither is an end: new code mends it, the parent says whom it waits for, and a termination reaches it."""
    small = App("small")

    @small.workflow
    async def unstorable(ctx: Context) -> Any:
        return Odd()

    @small.workflow
    async def waits(ctx: Context) -> str:
        try:
            return await ctx.child(unstorable, id="c")
        except ChildFailed as failed:
            return failed.status

    env = TestEnvironment(small)
    handle = env.start(waits, id="r")
    env.run_until_idle()
    assert env.get("c").status == "blocked"
    assert "unstorable" in str(env.get("c").reason)
    assert env.get("r").reason == 'child "unstorable" (run c)'
    assert [row.id for row in env.list(status="blocked").runs] == ["c"]
    env.terminate("c", reason="not to be mended")
    assert handle.result() == "cancelled"


@app.workflow
async def starts_last(ctx: Context) -> None:
    await ctx.start_child(step_dies, id="child", parent_close="abandon")


def test_CHD_03_a_child_started_as_the_last_act_runs_whatever_dies() -> None:
    matrix = TestEnvironment(app).run_crash_matrix(starts_last)
    assert "runs.send" in matrix.calls


@app.workflow
async def twice_anew(ctx: Context, n: int) -> int:
    await ctx.sleep(60)
    if n < 2:
        return await ctx.continue_as_new(twice_anew, n + 1)
    return await ctx.wait_for_signal(GO)


@app.workflow
async def owns(ctx: Context) -> int:
    return await ctx.child(twice_anew, 0, id="generations")


@app.workflow
async def clashes(ctx: Context) -> Any:
    try:
        return await ctx.child(slow, id="independent")
    except ChildFailed as failed:
        return str(failed)


def test_CHD_04_the_end_of_a_parent_reaches_a_child_of_later_generation() -> None:
    env = TestEnvironment(app)
    env.start(owns, id="r")
    env.advance(minutes=3)
    assert env.get("generations").id == "generations~3"
    env.cancel("r")
    env.advance(minutes=2)
    assert env.get("generations").status == "cancelled"


def test_CHD_04_a_run_that_is_nobodys_child_is_not_ended_with_whoever_waits_for_it() -> None:
    env = TestEnvironment(app)
    env.start(slow, id="independent")
    env.run_until_idle()
    env.start(clashes, id="r")
    env.run_until_idle()
    env.cancel("r")
    env.advance(minutes=5)
    assert env.get("r").status == "cancelled"
    assert env.get("independent").status == "suspended"


@app.workflow
async def same_id_twice(ctx: Context) -> str:
    await ctx.start_child(echo, 1, id="same")
    try:
        await ctx.child(echo, 2, id="same")
    except ChildFailed as failed:
        return failed.error.type
    return "no clash"


@app.workflow
async def echo(ctx: Context, n: int) -> int:
    return n


@app.workflow
async def unnamed(ctx: Context) -> list[int]:
    results = []
    for n in range(3):
        results.append(await ctx.child(echo, n))
        await ctx.sleep(60)
    return results


def test_CHD_05_ids_clash_catchably_and_derived_ids_are_the_same_on_every_replay() -> None:
    env = TestEnvironment(app)
    assert env.start(same_id_twice).result() == "RunAlreadyExists"
    handle = env.start(unnamed, id="r")
    for _ in range(10):
        env.advance(seconds=10)
        env.restart()
        env.resume("r")
    assert handle.result() == [0, 1, 2]
    assert len(env.children("r")) == 3
    assert len([run for run in env.world.services.memory.runs if run.parent == "r"]) == 3


async def quick(ctx: Context) -> int:
    return await ctx.child(echo, 1)


async def long(ctx: Context) -> int:
    return await ctx.child(slow, id="loser")


async def long_abandoned(ctx: Context) -> int:
    return await ctx.child(slow, id="left", parent_close="abandon")


@app.workflow
async def races(ctx: Context) -> int:
    branches = Branch("quick", quick), Branch("long", long), Branch("left", long_abandoned)
    return (await ctx.race("first", *branches)).value


def test_CHD_06_a_losing_child_is_cancelled_or_left_as_it_was_told_and_the_parent_ends() -> None:
    env = TestEnvironment(app)
    env.start(races, id="r")
    env.run_until_idle()
    assert env.get("r").status == "completed"
    env.advance(minutes=2)
    assert env.get("left").status == "suspended"
    with contextlib.suppress(RunNotFound):  # decided before it was started
        assert env.get("loser").status == "cancelled"


@app.workflow
async def one_in_fifty_fails(ctx: Context, n: int) -> str:
    if n % 50 == 7:
        raise ValueError(f"number {n}")
    return f"{n}" + "x" * 2048


async def asks_one(ctx: Context, n: int) -> int:
    return len(await ctx.child(one_in_fifty_fails, n))


@app.workflow
async def fans_out(ctx: Context, count: int) -> list[int]:
    result = await ctx.try_map("each", list(range(count)), asks_one, concurrency=50)
    return [len(result.values), len(result.failures)]


def test_CHD_07_a_wide_fan_out_is_bounded_and_wakes_its_parent_in_batches() -> None:
    env = TestEnvironment(app)
    handle = env.start(fans_out, 300, id="r")
    assert handle.result() == [294, 6]
    turns = env.get("r").epoch - env.get("r").born
    assert turns < 300
    assert env.repairs == 0


@app.workflow
async def keeps_result(ctx: Context) -> int:
    found = await ctx.child(echo, 5, id="done")
    await ctx.sleep(60)
    return found


def test_CHD_08_a_parent_keeps_its_copy_of_the_result_of_a_child_that_is_gone() -> None:
    env = TestEnvironment(app)
    handle = env.start(keeps_result, id="r")
    env.run_until_idle()
    env.world.services.store.delete_run("done")
    env.restart()
    assert handle.result() == 5
    with pytest.raises(RunNotFound):
        env.get("done")


@app.workflow
async def gathers(ctx: Context) -> list[int]:
    return list(await asyncio.gather(*(ctx.child(echo, n) for n in range(20))))


def test_CHD_07_children_of_a_gather_come_back_in_order() -> None:
    assert TestEnvironment(app).start(gathers).result() == list(range(20))


def test_CHD_01_a_child_that_failed_is_told_by_its_parent() -> None:
    env = TestEnvironment(app)

    @app.workflow
    async def lets_it_pass(ctx: Context) -> None:
        await ctx.child(raises)

    with pytest.raises(RunFailed, match="at once"):
        env.start(lets_it_pass).result()
