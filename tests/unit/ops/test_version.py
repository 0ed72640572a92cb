"""get_version: the code that a run has passed stays as it was; the code ahead of it is the newest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.properties.replays import check_replays, engine_for, play, replayed
from tests.properties.virtual_engine import Ctx, Store, Turn, Workflow, message


def plus_one(x: int) -> int:
    return x + 1


def guarded(ctx: Ctx, new_code: bool, name: str) -> bool:
    return new_code and ctx.get_version(name, 2) == 2


def workflow(new_code: bool) -> Workflow:
    """Parallel tasks, a wait and branches; the new code has one more step in each of them."""

    async def run(ctx: Ctx) -> Any:
        async def steps() -> None:
            await ctx.step("a1", plus_one, 1)
            if guarded(ctx, new_code, "va"):
                await ctx.step("new a", plus_one, 1)
            await ctx.step("a2", plus_one, 1)

        async def waits() -> None:
            await ctx.step("b1", plus_one, 1)
            if guarded(ctx, new_code, "vb"):
                await ctx.step("new b", plus_one, 1)
            await ctx.next("go")
            await ctx.step("b2", plus_one, 1)

        async def branch(ctx: Ctx) -> None:
            await ctx.step("x", plus_one, 1)
            if guarded(ctx, new_code, "vx"):
                await ctx.step("new x", plus_one, 1)
            await ctx.sleep(3)
            await ctx.step("y", plus_one, 1)

        await asyncio.gather(steps(), waits())
        if guarded(ctx, new_code, "vj"):
            await ctx.step("new j", plus_one, 1)
        await ctx.join("both", {"p": branch, "q": branch})

    return run


MAIL = [message("m1", "go", "now", after=3.0)]


def test_new_runs_take_the_newest_version_whatever_is_killed() -> None:
    check_replays(workflow(new_code=True), mail=MAIL)


@pytest.mark.parametrize("seed", range(6))
def test_a_deployment_at_any_point_of_a_run_does_no_harm(seed: int) -> None:
    before = engine_for(workflow(new_code=False), seed, Store(mail=list(MAIL)))
    before.run()
    history = before.store.valid()
    for length in range(len(history) + 1):
        store = Store(mail=list(MAIL), epoch=history[-1].epoch, items={entry.key: entry for entry in history[:length]})
        after = engine_for(workflow(new_code=True), seed, store, kill=0.1)
        assert after.run() == "returned None"
        assert replayed(workflow(new_code=True), store.valid()).result == "returned None"


@pytest.mark.parametrize("branches", [False, True])
def test_a_run_that_sleeps_keeps_the_code_before_its_wait(branches: bool) -> None:
    """Nothing is recorded at all: the wait that the last settle named is what tells."""

    def sleeper(new_code: bool) -> Workflow:
        async def body(ctx: Ctx) -> None:
            if guarded(ctx, new_code, "v"):
                await ctx.step("new", plus_one, 1)
            await ctx.sleep(50)

        async def run(ctx: Ctx) -> Any:
            await (ctx.join("both", {"a": body, "b": body}) if branches else body(ctx))

        return run

    before = engine_for(sleeper(new_code=False), seed=1, suspend=1.0)
    turn = Turn(before)
    assert turn.play() is False
    turn.execution.unwind()
    assert before.store.waits or before.store.waits_digest
    after = engine_for(sleeper(new_code=True), 1, before.store, kill=0.1)
    assert after.run() == "returned None"
    assert not any("new" in entry.location for entry in after.store.valid())


def test_a_version_is_recorded_before_what_comes_after_it() -> None:
    async def run(ctx: Ctx) -> Any:
        await ctx.step("a", plus_one, 1)
        version = ctx.get_version("v", 3)
        await ctx.step("b", plus_one, 1)
        return version

    result, engine = play(run, suspend=0.0)
    assert result == "returned 3"
    assert [entry.location for entry in engine.store.valid()] == ["a", "version:v", "b"]


def test_a_version_at_the_very_end_is_recorded() -> None:
    async def run(ctx: Ctx) -> Any:
        return ctx.get_version("v", 3)

    opened_result, engine = play(run)
    assert opened_result == "returned 3"
    assert [entry.location for entry in engine.store.valid()] == ["version:v"]


def test_versions_count_from_one() -> None:
    async def run(ctx: Ctx) -> Any:
        return ctx.get_version("v", 0)

    assert "count from 1" in play(run)[0]
