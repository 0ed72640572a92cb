"""Joins, races and maps: they are executed again on replay, and their branches are scopes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from durable.errors import JoinError, RaceError
from tests.properties.replays import check_replays, play, replayed
from tests.properties.virtual_engine import Ctx, message


def plus_one(x: int) -> int:
    return x + 1


def fail(x: int) -> int:
    raise ValueError(f"no {x}")


async def good(ctx: Ctx) -> int:
    return await ctx.step(plus_one, 1)


async def bad(ctx: Ctx) -> int:
    return await ctx.step(fail, 1)


async def naps(ctx: Ctx) -> str:
    await ctx.sleep(100)
    return "rested"


def locations(workflow: Any) -> list[str]:
    return [entry.location for entry in play(workflow, suspend=0.0)[1].store.valid()]


def test_what_branches_change_around_them_is_there_again_on_replay() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[int] = []
        event = asyncio.Event()

        async def a(ctx: Ctx) -> None:
            seen.append(await ctx.step(plus_one, 1))
            event.set()

        async def b(ctx: Ctx) -> None:
            await event.wait()
            seen.append(await ctx.step(plus_one, 2))

        async def outside() -> int:
            await event.wait()
            return await ctx.step("outside", plus_one, 5)

        await asyncio.gather(ctx.join("both", {"a": a, "b": b}), outside())
        for x in seen:
            await ctx.step(plus_one, x)
        return seen

    assert len(check_replays(workflow)) == 1


def test_every_branch_has_names_of_its_own() -> None:
    async def workflow(ctx: Ctx) -> Any:
        return await ctx.join("both", {"a/b": good, "c": good})

    assert sorted(locations(workflow)) == ["both/a%2Fb/plus_one", "both/c/plus_one"]


def test_a_join_waits_for_all_and_reports_every_failure_under_its_key() -> None:
    async def workflow(ctx: Ctx) -> Any:
        count = 0
        try:
            await ctx.join("all", {"bad": bad, "good": good, "worse": bad, "naps": naps})
        except* ValueError as errors:
            count = len(errors.exceptions)
        return count, ctx.now() >= 100

    assert check_replays(workflow, seeds=range(6)) == {"returned (2, True)"}


def test_join_error_names_the_branches() -> None:
    error = JoinError("all", {"a": ValueError("x"), "b": KeyError("y")})
    assert str(error).startswith("join \"all\" failed in branches: a (ValueError: x); b (KeyError: 'y')")
    assert error.failures["b"].args == ("y",)
    match, rest = error.split(KeyError)
    assert match is not None
    assert rest is not None
    assert [type(each) for each in rest.exceptions] == [ValueError]


def test_a_cancelled_join_waits_for_the_clean_up_of_its_branches() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def careful(ctx: Ctx) -> None:
            try:
                await ctx.sleep(100)
            finally:
                await ctx.step(plus_one, 1)

        try:
            async with asyncio.timeout(5):
                await ctx.join("both", {"a": careful, "b": careful})
        except TimeoutError:
            return "cleaned up"

    history = play(workflow, suspend=0.0)[1].store.valid()
    assert sorted(entry.location for entry in history) == ["both/a/plus_one", "both/b/plus_one", "timer"]
    assert check_replays(workflow) == {"returned 'cleaned up'"}


def test_empty_joins_and_maps_are_over_at_once() -> None:
    async def workflow(ctx: Ctx) -> Any:
        return await ctx.join("join", {}), await ctx.map("map", [], lambda ctx, _: good(ctx))

    assert play(workflow)[0] == "returned ({}, [])"


def test_the_first_success_wins_and_losers_consume_nothing_any_more() -> None:
    async def listens(ctx: Ctx) -> str:
        return await ctx.next("go")

    async def workflow(ctx: Ctx) -> Any:
        first = await ctx.race("first", {"listens": listens, "good": good, "bad": bad})
        await ctx.sleep(10)
        return first, await ctx.next("go")

    results = check_replays(workflow, mail=[message("m1", "go", "hello", after=3.0)])
    assert results == {"returned (Winner(key='good', value=2), 'hello')"}


def test_a_buffered_message_beats_a_sleep_of_zero() -> None:
    async def listens(ctx: Ctx) -> str:
        return await ctx.next("go")

    async def nothing_there(ctx: Ctx) -> str:
        await ctx.sleep(0)
        return "nothing"

    async def workflow(ctx: Ctx) -> Any:
        await ctx.sleep(10)
        seen: list[str] = []
        for round_ in range(3):
            winner = await ctx.race(f"drain-{round_}", {"listens": listens, "empty": nothing_there})
            seen.append(winner.value)
        return seen

    mail = [message("m1", "go", "a", after=1.0), message("m2", "go", "b", after=2.0)]
    assert check_replays(workflow, mail=mail) == {"returned ['a', 'b', 'nothing']"}


def test_a_race_that_all_lose_is_an_error() -> None:
    async def workflow(ctx: Ctx) -> Any:
        try:
            await ctx.race("race", {"bad": bad, "worse": bad})
        except RaceError as error:
            return str(error)

    assert 'race "race" has no winner; failed: bad (ValueError: no 1); worse (ValueError: no 1)' in play(workflow)[0]


def test_with_settle_first_a_failure_decides() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await ctx.race("race", {"bad": bad, "naps": naps}, settle="first")

    assert 'step "fail" failed after 1 attempt' in play(workflow)[0]


def test_losers_that_ignore_their_cancellation_do_not_delay_the_winner() -> None:
    async def stubborn(ctx: Ctx) -> None:
        try:
            await ctx.sleep(100)
        except asyncio.CancelledError:
            await ctx.sleep(100, "more")

    async def workflow(ctx: Ctx) -> Any:
        winner = await ctx.race("race", {"stubborn": stubborn, "good": good})
        return winner.key, ctx.now()

    assert "('good', 1000000." in play(workflow, suspend=0.0)[0]
    check_replays(workflow)


def test_a_race_needs_a_branch() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await ctx.race("race", {})

    assert "nobody could win" in play(workflow)[0]


def test_a_map_runs_a_few_items_at_a_time_and_keeps_their_order() -> None:
    running = most = 0

    async def one(ctx: Ctx, x: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        value = await ctx.step(plus_one, x)
        running -= 1
        return value

    async def workflow(ctx: Ctx) -> Any:
        return await ctx.map("map", range(9), one, concurrency=3)

    result, engine = play(workflow, suspend=0.0)
    assert result == "returned [1, 2, 3, 4, 5, 6, 7, 8, 9]"
    assert most == 3
    assert "map/4/plus_one" in [entry.location for entry in engine.store.valid()]
    assert len(check_replays(workflow)) == 1


def test_the_first_failure_of_a_map_is_raised_after_the_others_have_ended() -> None:
    ended: list[int] = []

    async def one(ctx: Ctx, x: int) -> int:
        try:
            return await (ctx.step(fail, x) if x == 1 else ctx.step(plus_one, x) if x == 0 else naps_long(ctx))
        finally:
            ended.append(x)

    async def naps_long(ctx: Ctx) -> int:
        await ctx.sleep(1000)
        return 0

    async def workflow(ctx: Ctx) -> Any:
        try:
            await ctx.map("map", range(9), one, concurrency=3)
        except ValueError:
            return sorted(ended)

    assert play(workflow, suspend=0.0)[0] in {"returned [0, 1, 2]", "returned [0, 1, 2, 3]"}


def test_other_items_on_replay_diverge() -> None:
    def mapping(count: int) -> Any:
        async def one(ctx: Ctx, x: int) -> int:
            return await ctx.step(plus_one, x)

        async def workflow(ctx: Ctx) -> Any:
            return await ctx.map("map", range(count), one)

        return workflow

    history = play(mapping(3), suspend=0.0)[1].store.valid()
    with pytest.raises(Exception, match="inside branches 3 items, the code has 4 items"):
        replayed(mapping(4), history)
