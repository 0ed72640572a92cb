"""Dying at any call between a parent and its children changes nothing: each child runs once, each end is heard once."""

import asyncio
from typing import Any

from durable import App, Branch, ChildFailed, Context, NonRetryableError, Signal
from durable.client import RunHandle
from durable.testing import TestEnvironment

GO = Signal("go", int)
app = App("families")


def square(n: int) -> int:
    return n * n


@app.workflow
async def squared(ctx: Context, n: int) -> int:
    if n < 0:
        raise NonRetryableError("negative")
    return await ctx.step(square, n)


@app.workflow
async def waiting(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def two_children(ctx: Context) -> list[int]:
    started = await ctx.start_child(squared, 3)
    good, bad = await asyncio.gather(ctx.child(squared, 2), ctx.child(squared, -1), return_exceptions=True)
    assert isinstance(bad, ChildFailed)
    return [good if isinstance(good, int) else 0, await started.result()]


@app.workflow
async def leaves_some(ctx: Context) -> str:
    await ctx.start_child(waiting, id="left")
    await ctx.start_child(squared, 5, id="abandoned", parent_close="abandon")
    await ctx.sleep("1h")
    return "gone"


@app.workflow
async def racing(ctx: Context) -> int:
    async def slow(ctx: Context) -> int:
        return await ctx.child(waiting, id="slow")

    async def quick(ctx: Context) -> int:
        return await ctx.child(squared, 4)

    winner = await ctx.race("first", Branch("slow", slow), Branch("quick", quick))
    return winner.value


@app.workflow
async def shared(ctx: Context) -> int:
    return await ctx.child(waiting, id="shared")


def test_children_that_end_well_and_badly() -> None:
    assert TestEnvironment(app).run_crash_matrix(two_children).crashes > 100


def test_children_whose_parent_ends_first() -> None:
    assert TestEnvironment(app).run_crash_matrix(leaves_some).crashes > 50


def test_a_child_that_loses_a_race() -> None:
    assert TestEnvironment(app).run_crash_matrix(racing).crashes > 50


def test_two_parents_of_one_child() -> None:
    def second(env: TestEnvironment, handle: RunHandle[Any]) -> None:
        other = env.start(shared, id="other")
        env.advance("5m")
        env.send("shared", GO, 7, id="go")
        handle.result()
        other.result()

    assert TestEnvironment(app).run_crash_matrix(shared, script=second).crashes > 50


def test_a_parent_that_is_cancelled() -> None:
    def cancel(env: TestEnvironment, handle: RunHandle[Any]) -> None:
        env.advance("5m")
        handle.cancel("graceful")

    assert TestEnvironment(app).run_crash_matrix(shared, script=cancel).crashes > 50


def test_a_parent_that_is_terminated() -> None:
    def terminate(env: TestEnvironment, handle: RunHandle[Any]) -> None:
        env.advance("5m")
        handle.cancel("terminate")
        env.advance("5m")

    assert TestEnvironment(app).run_crash_matrix(shared, script=terminate).crashes > 20
