"""A map runs a few items at a time, keeps their order, and carries ten thousand of them."""

import functools
import time
from typing import Any

import pytest

from durable import App, Context, MapError, NonRetryableError, RunBlocked, RunFailed, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World
from tests.scenarios.replaying import played_cold

SURE = Step(retries=20)
app = App("maps")
MANY = 10_000


def square(n: int) -> int:
    return n * n


def refuse_three(n: int) -> int:
    if n == 3:
        raise NonRetryableError("three")
    return n


async def one(ctx: Context, n: int) -> int:
    return await ctx.step(SURE, square, n)


async def napping(ctx: Context, n: int) -> int:
    await ctx.sleep(f"{10 - n}m")
    return await ctx.step(SURE, square, n)


async def picky(ctx: Context, n: int) -> int:
    return await ctx.step(SURE, refuse_three, n)


async def waiting(ctx: Context, n: int) -> int:
    await ctx.sleep("1h")
    return n


@app.workflow
async def squares(ctx: Context, count: int) -> list[int]:
    return await ctx.map("squares", range(count), napping, concurrency=3, key=lambda n: f"no-{n}")


@app.workflow
async def many(ctx: Context, count: int) -> int:
    return sum(await ctx.map("many", range(count), one, concurrency=64))


@app.workflow
async def many_waits(ctx: Context, count: int) -> int:
    return sum(await ctx.map("many", range(count), waiting, concurrency=count))


@app.workflow
async def first_failure(ctx: Context) -> list[int]:
    return await ctx.map("all", range(9), picky, concurrency=2)


@app.workflow
async def nothing(ctx: Context) -> list[int]:
    return await ctx.map("none", [], one)


def deployment(count: int, concurrency: int = 2) -> App[None]:
    changing = App("changing")

    @changing.workflow
    async def job(ctx: Context) -> list[int]:
        return await ctx.map("all", range(count), napping, concurrency=concurrency)

    return changing


def test_results_come_in_the_order_of_the_items(world: World) -> None:
    assert world(app).start(squares, 7, id="r").result() == [n * n for n in range(7)]
    assert world(app).start(nothing, id="n").result() == []


def test_items_are_named_by_their_keys(world: World) -> None:
    env = world(app)
    env.start(squares, 4, id="r").result()
    assert {entry.location.split("/")[1] for entry in env.history("r")} == {f"no-{n}" for n in range(4)}


def test_the_first_failure_fails_it(world: World) -> None:
    with pytest.raises(RunFailed, match="three"):
        world(app).start(first_failure, id="r").result()


def test_other_items_are_a_divergence_and_another_concurrency_is_none(world: World) -> None:
    env = world(deployment(4))
    handle = env.start(env.app.newest("job"), id="r")
    env.advance(minutes=15)
    env.deploy(deployment(5))
    with pytest.raises(RunBlocked, match="4 items, the code has 5 items"):
        handle.result()
    env.deploy(deployment(4, concurrency=4))
    assert handle.result() == [0, 1, 4, 9]


def test_ten_thousand_items(record_property: Any) -> None:
    env = TestEnvironment(app)
    begun = time.perf_counter()
    assert env.start(many, MANY, id="r").result() == sum(n * n for n in range(MANY))
    record_property("microseconds_an_item", round((time.perf_counter() - begun) / MANY * 1e6))


def test_a_thousand_items_wait_side_by_side() -> None:
    env = TestEnvironment(app)
    assert env.start(many_waits, 1000, id="r").result() == sum(range(1000))
    assert env.repairs == 0


def test_every_prefix_of_its_history_replays() -> None:
    played_cold(squares, app, input=5)


def test_dying_anywhere_changes_nothing() -> None:
    TestEnvironment(app).run_crash_matrix(squares, 4)


async def broken(ctx: Context, n: int) -> int:
    raise KeyError(n)


@app.workflow
async def fails_before_others_begin(ctx: Context) -> str:
    for name, operation in (("map", ctx.map), ("try", functools.partial(ctx.try_map, tolerate=0))):
        try:
            await operation(name, [1, 2, 3], broken)
        except (KeyError, MapError) as error:
            await ctx.step(f"note-{name}", square, len(str(error)))
    return "over"


def test_a_failure_before_the_others_have_begun_ends_it(world: World) -> None:
    assert world(app).start(fails_before_others_begin, id="r").result() == "over"
