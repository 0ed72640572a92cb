"""Wherever a run stands when new code is deployed, its versions follow from what it has recorded, and stay so."""

from collections.abc import Callable
from typing import Any

import pytest

from durable import App, Branch, Break, Context, Continue, Signal
from durable.testing import TestEnvironment, assert_replays
from tests.scenarios.replaying import COLD

GO = Signal("go", str)


def work(name: str) -> str:
    return name


async def flat(ctx: Context, new: bool) -> list[str]:
    done = [await ctx.step("first", work, "first")]
    await ctx.sleep("1h")
    if new and ctx.get_version("check", 2) > 1:
        done.append(await ctx.step("check", work, "check"))
    done.append(await ctx.step("second", work, "second"))
    await ctx.sleep("1h")
    if new and ctx.patched("audit"):
        done.append(await ctx.step("audit", work, "audit"))
    done.append(await ctx.wait_for_signal(GO))
    return done


async def branched(ctx: Context, new: bool) -> list[str]:
    async def quick(ctx: Context) -> str:
        if new and ctx.get_version("price", 2) > 1:
            return await ctx.step("new", work, "quick new")
        await ctx.step("old", work, "old")
        await ctx.sleep("1h")
        return "quick old"

    async def slow(ctx: Context) -> str:
        await ctx.sleep("90m")
        if new and ctx.patched("price"):  # another scope, another place
            return await ctx.step("new", work, "slow new")
        await ctx.sleep("1h")
        return await ctx.step("old", work, "slow old")

    async def block(ctx: Context) -> str:
        await ctx.sleep("2h")
        return "nested new" if new and ctx.patched("in the block") else await ctx.step("nested", work, "nested old")

    both = await ctx.join("both", Branch("quick", quick), Branch("slow", slow))
    nested = await ctx.race("race", Branch("only", block))
    return [*both, nested.value, await ctx.wait_for_signal(GO)]


async def looped(ctx: Context, new: bool) -> list[str]:
    async def body(ctx: Context, done: list[str]) -> Break[list[str]] | Continue[list[str]]:
        if new and ctx.get_version("round", 2) > 1:
            done = [*done, await ctx.step("new", work, "new")]
        await ctx.sleep("1h")
        done = [*done, await ctx.step("old", work, "old")]
        return Break(done) if done.count("old") == 5 else Continue(done)

    done = await ctx.loop("rounds", body, state=[], history=2)
    return [*done, await ctx.wait_for_signal(GO)]


Program = Callable[[Context, bool], Any]
PROGRAMS = [flat, branched, looped]


def deployment(program: Program, *, new: bool) -> App[None]:
    app = App("points")

    @app.workflow
    async def job(ctx: Context) -> list[str]:
        return await program(ctx, new)

    return app


def play(program: Program, deploys: Callable[[TestEnvironment], None]) -> TestEnvironment:
    """The run of the old code; `deploys` is called before anything happens, and whatever it does decides the rest."""
    env = TestEnvironment(deployment(program, new=False), options=COLD)
    handle = env.start("job", id="r")
    deploys(env)
    env.advance(hours=8)
    handle.send(GO, "go")
    result = handle.result()
    assert result[-1] == "go"
    assert_replays(env.export("r"), env.app)
    return env


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_deployment_may_come_at_any_moment_between_turns(program: Program) -> None:
    results = set[tuple[str, ...]]()
    for minutes in range(-1, 480, 20):

        def at_that_time(env: TestEnvironment, minutes: int = minutes) -> None:
            if minutes >= 0:
                env.advance(minutes=minutes)
            env.deploy(deployment(program, new=True))

        results.add(tuple(play(program, at_that_time).result("r")))
    assert len(results) > 2, "every moment had the same answer: the versions were not asked"


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_deployment_may_come_after_a_crash_anywhere(program: Program) -> None:
    calls = len(play(program, lambda _: None).calls)
    for number in range(1, calls + 1):
        for after in (False, True):

            def at_that_crash(env: TestEnvironment, number: int = number, after: bool = after) -> None:
                def deploy() -> None:
                    if len(env.calls) >= number and env.world.deployments == 1:
                        env.deploy(deployment(program, new=True))

                env.crash_at(number, after=after)
                env.world.after_delivery = deploy

            play(program, at_that_crash)
