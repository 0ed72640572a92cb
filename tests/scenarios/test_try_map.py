"""A map that keeps outcomes: failures are tolerated up to a bound, and enough successes end it early."""

from datetime import timedelta
from typing import Any

import pytest

from durable import (
    App,
    Context,
    MapError,
    NonRetryableError,
    RollbackError,
    RunFailed,
    Signal,
    Skipped,
    Step,
)  # fmt: skip
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("tolerant-maps")
SURE = Step("work", retries=20)
NEWS = Signal("news", int)


def work(n: int) -> int:
    if n % 3 == 0:
        raise NonRetryableError(f"three divides {n}")
    return n * n


def undo_all() -> int:
    raise RollbackError("undo")


async def one(ctx: Context, n: int) -> int:
    return await ctx.step(SURE, work, n)


async def slow(ctx: Context, n: int) -> int:
    await ctx.sleep(n * 60)
    return n


async def listens(ctx: Context, n: int) -> int:
    return (await ctx.mailbox.next(NEWS)).body + n


async def broken(ctx: Context, n: int) -> int:
    if n == 2:
        raise KeyError(n)
    return n


async def undone(ctx: Context, n: int) -> int:
    return await ctx.step(undo_all) if n == 2 else await slow(ctx, n)


@app.workflow
async def all_of_them(ctx: Context) -> list[Any]:
    result = await ctx.try_map("all", range(1, 8), one, concurrency=2, key=lambda n: f"no-{n}")
    await ctx.sleep("1h")
    return [result.values, [[index, failed.kind, failed.name] for index, failed in result.failures]]


@app.workflow
async def at_most_one(ctx: Context) -> list[Any]:
    try:
        await ctx.try_map("all", range(1, 20), one, concurrency=1, tolerate=1)
    except MapError as error:
        await ctx.sleep("1h")
        skipped = sum(isinstance(outcome, Skipped) for outcome in error.result.outcomes)
        return [str(error), error.result.values, skipped]
    return []


@app.workflow
async def three_are_enough(ctx: Context) -> list[Any]:
    result = await ctx.try_map("all", range(10, 0, -1), slow, concurrency=10, enough=3)
    await ctx.sleep("2h")
    return [result.values, sum(isinstance(outcome, Skipped) for outcome in result.outcomes)]


@app.workflow
async def enough_then_listens(ctx: Context) -> list[int]:
    result = await ctx.try_map("all", [1, 2, 3], listens, enough=1)
    return [*result.values, (await ctx.mailbox.next(NEWS)).body]


@app.workflow
async def faults(ctx: Context) -> list[Any]:
    result = await ctx.try_map("all", [1, 2, 3], broken)
    ((_, failed),) = result.failures
    return [result.values, failed.source, failed.name, failed.error.type]


@app.workflow
async def rolled_back(ctx: Context) -> int:
    return len((await ctx.try_map("all", [1, 2, 3], undone)).values)


@app.workflow
async def nothing(ctx: Context) -> int:
    return len((await ctx.try_map("all", [], one, tolerate=0, enough=5)).outcomes)


def test_every_item_has_an_outcome_in_the_order_of_the_items(world: World) -> None:
    expected = [[1, 4, 16, 25, 49], [[2, "critical", "work"], [5, "critical", "work"]]]
    assert world(app).start(all_of_them, id="r").result() == expected


def test_one_failure_too_many_ends_it_with_what_there_is(world: World) -> None:
    expected = ['map "all": 2 items failed, 1 are tolerated', [1, 4, 16, 25], 13]
    assert world(app).start(at_most_one, id="r").result() == expected


def test_enough_successes_end_it_without_waiting_for_the_rest(world: World) -> None:
    env = world(app)
    start = env.now
    assert env.start(three_are_enough, id="r").result() == [[3, 2, 1], 7]
    assert env.now - start == timedelta(hours=2, minutes=3)


def test_skipped_items_consume_nothing_any_more(world: World) -> None:
    env = world(app)
    handle = env.start(enough_then_listens, id="r")
    for n in (10, 20):
        handle.send(NEWS, n)
    assert handle.result() == [11, 20]


def test_an_exception_of_the_code_is_the_failure_of_its_item(world: World) -> None:
    assert world(app).start(faults, id="r").result() == [[1, 3], "block", "1", "KeyError"]


def test_a_rollback_ends_it_at_once(world: World) -> None:
    with pytest.raises(RunFailed, match="undo"):
        world(app).start(rolled_back, id="r").result()


def test_no_items_are_no_failure(world: World) -> None:
    assert world(app).start(nothing, id="r").result() == 0


@pytest.mark.parametrize("workflow", [all_of_them, at_most_one, three_are_enough], ids=lambda one: one.name)
def test_dying_anywhere_changes_nothing(workflow: Any) -> None:
    TestEnvironment(app).run_crash_matrix(workflow)
