"""Dying once before and once after every port call changes neither outcome nor history, whoever wakes the run again."""

import asyncio
from typing import Any

import pytest

from durable import App, Context, NonRetryableError, Signal, Step, StepFailed
from durable.client import RunHandle
from durable.testing import CrashMatrix, TestEnvironment

APPROVE = Signal("approve", str)
ITEM = Signal("item", int)
app = App("crashes")


class Declined(Exception):
    pass


def reserve(order: str) -> str:
    return f"reserved {order}"


def charge(order: str) -> str:
    raise Declined(f"no funds for {order}")


def square(n: int) -> int:
    return n * n


def flaky() -> str:
    return "ok"


@app.workflow
async def order(ctx: Context, name: str) -> list[str]:
    reserved = await ctx.step(reserve, name)
    approval = await ctx.mailbox.next(APPROVE, timeout="1 day")
    await ctx.sleep("1h")
    try:
        await ctx.step(Step(retries=9, no_retry=(Declined,)), charge, name)
    except Declined as declined:
        return [reserved, approval.body, str(declined.args[0]) if declined.args else "declined"]
    return [reserved, approval.body, "charged"]


@app.workflow
async def siblings(ctx: Context) -> list[int]:
    first = await asyncio.gather(*(ctx.step(Step(f"square-{n}", retries=20), square, n) for n in range(3)))
    timers = [ctx.sleep(n, name=f"nap-{n}") for n in (0, 5, 10)]
    await asyncio.gather(*timers, ctx.step("last", square, 9))
    return first


@app.workflow
async def collector(ctx: Context) -> list[int]:
    seen: list[int] = []
    while len(seen) < 3:
        seen += [message.body for message in await ctx.mailbox.next_batch(ITEM, count=2, timeout="10 days")]
    late = await ctx.mailbox.next(ITEM, timeout="20s", default=None)
    return [*seen, -1 if late is None else late.body]


@app.workflow
async def listener(ctx: Context) -> list[int]:
    return [(await ctx.mailbox.next(ITEM)).body for _ in range(3)]


@app.workflow
async def greeter(ctx: Context) -> str:
    await ctx.mailbox.send("listener", ITEM, 1)
    await ctx.sleep("5m")
    await asyncio.gather(ctx.mailbox.send("listener", ITEM, 2), ctx.step(flaky))
    await ctx.mailbox.send("listener", ITEM, 3)
    return "greeted"


@app.workflow
async def failing(ctx: Context) -> str:
    await ctx.sleep(1)
    try:
        return await ctx.step(charge, "x")
    except StepFailed:
        raise ValueError("the whole run fails") from None


def approve_later(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.advance(minutes=30)
    handle.send(APPROVE, "yes", id="approval")


def three_items(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    for n in range(3):
        handle.send(ITEM, n, id=f"item-{n}")
        env.advance(minutes=20)


def test_a_run_with_steps_a_message_and_a_sleep() -> None:
    env = TestEnvironment(app)
    env.mock(charge).raises(Declined("no funds for book"))
    matrix = env.run_crash_matrix(order, "book", script=approve_later)
    assert_complete(matrix, at_least=15)


def test_siblings_and_timers() -> None:
    assert_complete(TestEnvironment(app).run_crash_matrix(siblings), at_least=12)


def test_batches_of_messages() -> None:
    assert_complete(TestEnvironment(app).run_crash_matrix(collector, script=three_items), at_least=15)


def test_messages_from_run_to_run_arrive_once() -> None:
    def start_receiver(env: TestEnvironment, handle: RunHandle[Any]) -> None:
        receiver = env.start(listener, id="listener")
        handle.result()
        receiver.result()

    assert_complete(TestEnvironment(app).run_crash_matrix(greeter, script=start_receiver), at_least=25)


def test_a_run_that_fails() -> None:
    env = TestEnvironment(app)
    env.mock(charge).raises(NonRetryableError("no funds"))
    assert_complete(env.run_crash_matrix(failing), at_least=5)


def assert_complete(matrix: CrashMatrix, *, at_least: int) -> None:
    assert len(matrix.calls) >= at_least
    assert matrix.crashes == 4 * len(matrix.calls)


def test_a_fault_of_the_workflow_is_named_with_the_call() -> None:
    """A body whose result changes from execution to execution gives another history after a crash."""
    env = TestEnvironment(app)
    counter = iter(range(10_000))
    env.mock(reserve).runs(lambda order: f"reserved {order} {next(counter)}")
    env.mock(charge).raises(Declined("no funds"))
    with pytest.raises(AssertionError, match=r"dying before call \d+ \(store\.\w+\)"):
        env.run_crash_matrix(order, "book", script=approve_later)
