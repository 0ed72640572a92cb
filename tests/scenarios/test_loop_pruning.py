"""A loop's stored history keeps its size, whatever the number of iterations, and what it consumed stays consumed."""

from __future__ import annotations

from typing import Any

from durable import App, Break, Context, Continue, RunHandle, Signal, Step
from durable.testing import TestEnvironment

app = App("loops")
ITEM = Signal("item", int)


def work(n: int) -> int:
    return n + 1


async def count(ctx: Context, n: int) -> Continue[int] | Break[int]:
    n = await ctx.step(work, n)
    return Break(n) if n >= 10_000 else Continue(n)


async def count_slowly(ctx: Context, n: int) -> Continue[int] | Break[int]:
    n = await ctx.step(work, n)
    await ctx.sleep("10m")
    return Break(n) if n >= 130 else Continue(n)


async def sum_up(ctx: Context, total: int) -> Continue[int] | Break[int]:
    message = await ctx.mailbox.next(ITEM)
    return Break(total) if message.body < 0 else Continue(total + message.body)


@app.workflow
async def busy(ctx: Context) -> int:
    return await ctx.loop("busy", count, state=0)


@app.workflow
async def slow(ctx: Context) -> int:
    return await ctx.loop("slow", count_slowly, state=0)


async def record_nothing(_: Context, n: int) -> Continue[int] | Break[int]:
    return Break(n) if n == 5 else Continue(n + 1)


@app.workflow
async def guesser(ctx: Context) -> int:
    guess = await ctx.step(Step("guess", ephemeral=True), work, 0)
    await ctx.loop("nothing", record_nothing, state=0, history=2)
    await ctx.mailbox.next(ITEM)
    return guess


@app.workflow
async def adder(ctx: Context) -> int:
    total = await ctx.loop("add", sum_up, state=0, history=5)
    last = await ctx.mailbox.next(ITEM, timeout="1h", default=None)
    return total if last is None else -1


def stored(env: TestEnvironment, run_id: str) -> int:
    return len(env.history(run_id))


def test_i7_ten_thousand_iterations_in_one_turn_leave_a_window() -> None:
    with TestEnvironment(app) as env:
        assert env.start(busy, id="r").result() == 10_000
        assert stored(env, "r") < 120


def test_i7_iterations_in_turns_of_their_own_leave_a_window() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(slow, id="r")
        for _ in range(12):
            env.advance(hours=2)
            assert stored(env, "r") < 150
        assert handle.result() == 130


def test_a_message_that_a_pruned_iteration_consumed_is_not_consumed_again() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(adder, id="r")
        for n in range(1, 31):
            env.send("r", ITEM, n, id=f"item-{n}")
            env.run_until_idle()
        env.restart()
        env.send("r", ITEM, 1, id="item-1")
        env.run_until_idle()
        env.send("r", ITEM, -1, id="end")
        assert handle.result() == sum(range(1, 31))
        assert stored(env, "r") < 20


def test_the_result_of_an_ephemeral_step_outlives_the_progress_that_carries_it() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(guesser, id="r")
        for _ in range(2):  # the second turn prunes what the first has left
            env.run_until_idle()
            env.restart()
            env.resume("r")
        env.send("r", ITEM, 1, id="end")
        assert handle.result() == 1


def test_a_loop_survives_a_crash_at_every_call() -> None:
    def script(env: TestEnvironment, handle: RunHandle[Any]) -> None:
        for n in range(1, 8):
            handle.send(ITEM, n, id=f"item-{n}")
            env.run_until_idle()
        handle.send(ITEM, -1, id="end")

    TestEnvironment(app).run_crash_matrix(adder, script=script)
