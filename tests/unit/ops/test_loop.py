"""Loops: past iterations are not executed again, and state passes through `state` alone."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from durable.errors import Diverged, UnawaitedOperation
from durable.values import Break, Continue
from tests.properties.replays import check_replays, play, replayed
from tests.properties.virtual_engine import Ctx


def plus_one(x: int) -> int:
    return x + 1


def fail(x: int) -> int:
    raise ValueError(f"no {x}")


async def counting(ctx: Ctx) -> Any:
    async def body(ctx: Ctx, state: int) -> Continue[int] | Break[str]:
        state = await ctx.step(plus_one, state)
        return Break(f"{state}") if state == 7 else Continue(state)

    return await ctx.loop("count", body, 0, history=3)


def test_a_loop_resumes_from_its_last_recorded_progress() -> None:
    assert check_replays(counting) == {"returned '7'"}


def test_progress_is_recorded_every_so_many_iterations() -> None:
    history = play(counting, suspend=0.0)[1].store.valid()
    assert [entry.key for entry in history if entry.kind == "loop"] == ["count~3", "count~6", "count"]
    resumed = replayed(counting, [entry for entry in history if entry.key in {"count~3", "count~6"}])
    assert resumed.pending == ["count[6]/plus_one"]


def test_a_finished_loop_needs_its_own_entry_only() -> None:
    history = play(counting, suspend=0.0)[1].store.valid()
    assert replayed(counting, history[-1:]).result == "returned '7'"


def test_an_iteration_ends_what_it_has_started() -> None:
    async def workflow(ctx: Ctx) -> Any:
        earlier: list[asyncio.Task[None]] = []

        async def body(ctx: Ctx, state: int) -> Continue[int] | Break[int]:
            step, nap = asyncio.create_task(ctx.step(plus_one, state)), asyncio.create_task(ctx.sleep(50))
            state += await ctx.step(plus_one, 0)
            with contextlib.suppress(ValueError):
                await asyncio.gather(step, ctx.step(fail, 1))
            assert all(task.done() for task in earlier)
            earlier.append(nap)
            return Break(state) if state > 5 else Continue(state)

        async def other() -> Any:
            return [await ctx.step(plus_one, x) for x in range(5)]

        return await asyncio.gather(ctx.loop("poll", body, 0, history=2), other())

    assert len(check_replays(workflow)) == 1


def test_an_iteration_ends_the_losers_of_its_races() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def stubborn(ctx: Ctx) -> int:
            try:
                await ctx.sleep(100)
            except asyncio.CancelledError:
                await ctx.step("clean-up", plus_one, 1)
                raise
            return 1

        async def quick(ctx: Ctx) -> int:
            return await ctx.step(plus_one, 1)

        async def body(ctx: Ctx, state: int) -> Continue[int] | Break[int]:
            await ctx.race("race", {"stubborn": stubborn, "quick": quick})
            return Break(state) if state == 2 else Continue(state + 1)

        return await ctx.loop("poll", body, 0, history=1)

    result, engine = play(workflow, suspend=0.0)
    assert result == "returned 2"
    assert "poll[0]/race/stubborn/clean-up" in [entry.location for entry in engine.store.valid()]
    check_replays(workflow)


def test_a_cancellation_that_the_body_outlived_is_held_back_on_replay() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx, state: int) -> Continue[int] | Break[str]:
            try:
                await ctx.sleep(100)
            except asyncio.CancelledError:
                await ctx.step(plus_one, state)
            return Continue(state + 1) if state < 2 else Break("done")

        task = asyncio.create_task(ctx.loop("poll", body, 0, history=1))
        for _ in range(3):
            await ctx.sleep(5)
            task.cancel()
        return await task, await ctx.step(plus_one, 1)

    assert check_replays(workflow, seeds=range(30)) == {"returned ('done', 2)"}


def test_what_a_body_changes_outside_itself_is_lost_and_noticed() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[int] = []

        async def body(ctx: Ctx, state: int) -> Continue[int] | Break[None]:
            seen.append(await ctx.step(plus_one, state))
            return Continue(state + 1) if state < 3 else Break(None)

        await ctx.loop("poll", body, 0)
        for x in seen:
            await ctx.step("later", plus_one, x)
            break

    history = play(workflow, suspend=0.0)[1].store.valid()
    with pytest.raises(Diverged, match='step "later"'):
        replayed(workflow, history)


def test_names_repeat_from_iteration_to_iteration_and_not_within_one() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx, state: int) -> Continue[int] | Break[int]:
            await ctx.step("mail", plus_one, state)
            return Break(state) if state else Continue(1)

        return await ctx.loop("poll", body, 0)

    assert play(workflow)[0] == "returned 1"


def test_a_body_annotated_none_goes_on() -> None:
    rounds: list[int] = []

    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx) -> None:
            rounds.append(1)
            if len(rounds) > 3:
                raise ValueError("enough")

        await ctx.loop("poll", body)

    assert "enough" in play(workflow, suspend=0.0)[0]


def test_a_missing_return_is_named() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx, state: int) -> Any:
            return None

        await ctx.loop("poll", body, 0)

    assert (
        "returned None in iteration 0: return Continue(state) to go on or Break(value) to stop (a missing return?)"
        in (play(workflow)[0])
    )


def test_an_operation_that_an_iteration_forgets_is_named() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx, state: int) -> Any:
            ctx.step("mail", plus_one, 1)
            return Break(1)

        await ctx.loop("poll", body, 0)

    with pytest.raises(UnawaitedOperation, match=r'step "poll\[0\]/mail"'):
        play(workflow)


def test_state_and_value_are_read_with_the_declared_types() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx, state: tuple[int, ...]) -> Continue[tuple[int, ...]] | Break[frozenset[int]]:
            state = (*state, await ctx.step(plus_one, len(state)))
            return Break(frozenset(state)) if len(state) == 3 else Continue(state)

        return await ctx.loop("poll", body, (), history=1)

    assert check_replays(workflow, seeds=range(6)) == {"returned frozenset({1, 2, 3})"}
