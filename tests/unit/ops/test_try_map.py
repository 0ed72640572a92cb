"""A map with outcomes: what is tolerated, what is enough, and the same answer from every prefix."""

from __future__ import annotations

from typing import Any

from durable.errors import MapError
from durable.values import Skipped
from tests.properties.replays import check_replays, play
from tests.properties.virtual_engine import Ctx


def refuse_odd(n: int) -> int:
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n


async def one(ctx: Ctx, n: int) -> int:
    await ctx.sleep(n)
    return await ctx.step(refuse_odd, n)


async def at_once(ctx: Ctx, n: int) -> int:
    raise KeyError(n)


async def tolerant(ctx: Ctx) -> Any:
    result = await ctx.try_map("all", range(6), one)
    return result.values, [(index, failed.name) for index, failed in result.failures]


async def strict(ctx: Ctx) -> Any:
    try:
        await ctx.try_map("all", range(6), one, tolerate=1, concurrency=1)
    except MapError as error:
        return [type(outcome).__name__ for outcome in error.result.outcomes]


async def in_a_hurry(ctx: Ctx) -> Any:
    result = await ctx.try_map("all", range(6), one, enough=2)
    return result.values, sum(isinstance(outcome, Skipped) for outcome in result.outcomes)


async def broken(ctx: Ctx) -> Any:
    try:
        await ctx.try_map("all", range(6), at_once, tolerate=0)
    except MapError as error:
        return str(error)


def test_outcomes_are_the_same_from_every_prefix() -> None:
    assert check_replays(tolerant) == {
        "returned ([0, 2, 4], [(1, 'refuse_odd'), (3, 'refuse_odd'), (5, 'refuse_odd')])"
    }
    assert check_replays(strict) == {"returned ['Ok', 'Failed', 'Ok', 'Failed', 'Skipped', 'Skipped']"}
    check_replays(in_a_hurry)


def test_it_ends_when_enough_have_succeeded() -> None:
    assert play(in_a_hurry, suspend=0.0)[0] == "returned ([0, 2], 3)"


def test_items_that_have_not_begun_are_not_waited_for() -> None:
    assert play(broken)[0] == "returned 'map \"all\": 1 items failed, 0 are tolerated'"
