"""Dying at any call between a run and its workers changes nothing: each call has one result, and nobody waits for ever."""

import asyncio

from durable import App, Backoff, Branch, Call, Context, NonRetryableError, StepFailed, step_context
from durable.testing import TestEnvironment, kill_process

app = App("remote-families")
app.queue("narrow", concurrency=1)


@app.remote_step
def square(n: int) -> int:
    return n * n


@app.remote_step(queue="narrow")
def one_at_a_time(n: int) -> int:
    return n + 1


@app.remote_step(retries=2)
def fails_first(n: int) -> int:
    if step_context().attempt == 1:
        raise ConnectionError("not yet")
    return n


@app.remote_step
def refuses(n: int) -> int:
    raise NonRetryableError(str(n))


@app.workflow
async def sum_of_squares(ctx: Context) -> int:
    return sum(await asyncio.gather(*(ctx.call(square, n) for n in range(3))))


@app.workflow
async def retries(ctx: Context) -> int:
    return await ctx.call(Call(backoff=Backoff("30s")), fails_first, 7)


@app.workflow
async def handles_a_failure(ctx: Context) -> str:
    try:
        return str(await ctx.call(refuses, 3))
    except StepFailed as error:
        return error.kind


@app.workflow
async def limited(ctx: Context) -> list[int]:
    return list(await asyncio.gather(ctx.call(one_at_a_time, 1), ctx.call(one_at_a_time, 2)))


@app.remote_step
def never_comes_back(n: int) -> int:
    kill_process()


@app.workflow
async def racing(ctx: Context) -> int:
    async def by_call(ctx: Context) -> int:
        return await ctx.call(Call(timeout="1h"), never_comes_back, 1)

    async def by_time(ctx: Context) -> int:
        await ctx.sleep("20m")  # later than anything recovers
        return 0

    winner = await ctx.race("first", Branch("call", by_call), Branch("time", by_time))
    await ctx.sleep("10m")
    return winner.value


@app.workflow
async def gives_up(ctx: Context) -> str:
    try:
        return str(await ctx.call(Call(heartbeat="20s", retries=1), never_comes_back, 1))
    except StepFailed as error:
        return error.kind


def test_calls_side_by_side() -> None:
    assert TestEnvironment(app).run_crash_matrix(sum_of_squares).crashes > 50


def test_a_call_that_is_tried_again() -> None:
    assert TestEnvironment(app).run_crash_matrix(retries).crashes > 50


def test_a_call_that_fails() -> None:
    assert TestEnvironment(app).run_crash_matrix(handles_a_failure).crashes > 50


def test_calls_that_take_turns() -> None:
    assert TestEnvironment(app).run_crash_matrix(limited).crashes > 100


def test_a_call_that_nobody_waits_for_any_more() -> None:
    assert TestEnvironment(app).run_crash_matrix(racing).crashes > 50


def test_a_call_whose_workers_die() -> None:
    assert TestEnvironment(app).run_crash_matrix(gives_up).crashes > 50
