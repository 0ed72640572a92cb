"""Failures of the operations in a try block are values; faults of its own code are raised as they are."""

from typing import Any

import pytest

from durable import App, Branch, Context, Ok, RollbackError, RunBlocked, RunFailed, Signal, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

GO = Signal("go", str)
app = App("try-blocks")
SURE = Step(retries=20)


class Declined(Exception):
    pass


def plus_one(n: int) -> int:
    return n + 1


def decline() -> int:
    raise Declined("no funds")


def undo_all() -> int:
    raise RollbackError("stop")


async def declines(ctx: Context) -> int:
    return await ctx.step(Step("pay", retries=20, no_retry=(Declined,)), decline)


async def by_step(ctx: Context) -> int:
    first = await ctx.step(SURE, plus_one, 1)
    await ctx.sleep("1h")
    return first + await declines(ctx)


async def by_join(ctx: Context) -> int:
    await ctx.join("both", Branch("good", one_more, 1), Branch("bad", declines))
    return 0


async def by_race(ctx: Context) -> int:
    return (await ctx.race("either", Branch("bad", declines), Branch("worse", declines))).value


async def by_map(ctx: Context) -> int:
    return len((await ctx.try_map("all", [1], lambda ctx, n: declines(ctx), tolerate=0)).values)


async def by_nested(ctx: Context) -> int:
    inner = await ctx.try_block("inner", by_join, catch=("step",))
    assert isinstance(inner, Ok)
    return inner.value


async def by_code(ctx: Context) -> int:
    await ctx.step(SURE, plus_one, 1)
    raise KeyError("a fault of the code")


async def by_rollback(ctx: Context) -> int:
    return await ctx.step(undo_all)


async def one_more(ctx: Context, n: int) -> int:
    await ctx.sleep("10m")
    return await ctx.step(SURE, plus_one, n)


async def shared_names(ctx: Context) -> int:
    return await ctx.step(Step("same", retries=20), plus_one, 1)


BODIES = {
    "step": by_step, "join": by_join, "race": by_race, "map": by_map, "nested": by_nested, "code": by_code,
    "rollback": by_rollback,
}  # fmt: skip


@app.workflow
async def tried(ctx: Context, which: str) -> list[str]:
    outcome = await ctx.try_block("block", BODIES[which])
    await ctx.sleep("1h")
    if isinstance(outcome, Ok):
        return ["ok"]
    return [outcome.source, outcome.kind, outcome.name, outcome.error.type]


@app.workflow
async def names(ctx: Context) -> list[int]:
    outside = await ctx.step(Step("same", retries=20), plus_one, 2)
    inside = await ctx.try_block("block", shared_names)
    return [outside, inside.unwrap()]


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("step", ["step", "critical", "pay", "test_try_block.Declined"]),
        ("join", ["join", "critical", "both", "JoinError"]),
        ("race", ["race", "critical", "either", "RaceError"]),
        ("map", ["block", "exhausted", "all", "MapError"]),
        ("nested", ["join", "critical", "both", "JoinError"]),
    ],
)
def test_a_failure_is_named_with_its_source(world: World, which: str, expected: list[str]) -> None:
    result = world(app).start(tried, which, id="r").result()
    assert result == [*expected[:-1], expected[-1].rpartition(".")[2]]


def test_a_fault_of_the_code_is_no_outcome(world: World) -> None:
    with pytest.raises(RunFailed, match="a fault of the code"):
        world(app).start(tried, "code", id="r").result()


def test_a_rollback_passes_through(world: World) -> None:
    with pytest.raises(RunFailed, match="stop"):
        world(app).start(tried, "rollback", id="r").result()


def test_a_block_has_names_of_its_own(world: World) -> None:
    env = world(app)
    assert env.start(names, id="r").result() == [3, 2]
    assert [entry.location for entry in env.history("r")] == ["same", "block/same"]


def test_an_outcome_stays_when_the_step_would_succeed_now(world: World) -> None:
    env = world(app)
    handle = env.start(tried, "step", id="r")
    env.advance(minutes=90)
    env.mock(decline).returns(5)
    env.restart()
    assert handle.result()[0] == "step"


def test_an_operation_that_is_not_awaited_in_a_block_blocks_the_run(world: World) -> None:
    forgetful_app = App("forgetful")

    async def forgets(ctx: Context) -> int:
        ctx.step(plus_one, 1)  # pyright: ignore[reportUnusedCoroutine]
        return 0

    @forgetful_app.workflow
    async def forgetful(ctx: Context) -> Any:
        return (await ctx.try_block("block", forgets)).unwrap()

    with pytest.raises(RunBlocked, match='step "block/plus_one" was called and never awaited'):
        world(forgetful_app).start(forgetful, id="r").result()


@pytest.mark.parametrize("which", ["step", "join", "race", "map", "nested"])
def test_dying_anywhere_changes_nothing(which: str) -> None:
    TestEnvironment(app).run_crash_matrix(tried, which)
