"""Sleeps, timers of asyncio, and messages to other runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from durable.model.entry import Entry
from durable.model.sending import recorded_send_from
from durable.ops.effect import Stamp
from durable.ops.send import SendOperation
from durable.ops.sleep import SleepOperation
from durable.ops.timer import TimerOperation
from tests.properties.replays import check_replays
from tests.properties.virtual_engine import STARTED_AT, Ctx, open_run


def taken(workflow: Any) -> tuple[Any, list[Any]]:
    opened = open_run(workflow)
    opened.execution.advance()
    return opened, opened.execution.take()


def test_a_deadline_is_the_time_of_the_latest_event_plus_the_duration() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await ctx.sleep(5)
        await ctx.sleep(7)

    opened, [first] = taken(workflow)
    assert (first.location, first.deadline) == ("sleep", STARTED_AT + 5)
    opened.execution.deliver(Entry(location="sleep", kind="sleep", epoch=1, n=1, at=STARTED_AT + 60))
    [second] = opened.execution.take()
    assert (second.location, second.deadline) == ("sleep#2", STARTED_AT + 67)
    opened.execution.unwind()


@pytest.mark.parametrize("seconds", [0, -3])
def test_no_time_at_all_is_immediate(seconds: float) -> None:
    async def workflow(ctx: Ctx) -> Any:
        await ctx.sleep(seconds)

    opened, [sleep] = taken(workflow)
    assert (sleep.immediate, sleep.deadline) == (True, STARTED_AT)
    opened.execution.unwind()


def test_sleep_until_a_moment_in_the_past_is_immediate() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await asyncio.gather(ctx.sleep_until(STARTED_AT - 5), ctx.sleep_until(STARTED_AT + 5, "launch"))

    opened, [past, future] = taken(workflow)
    assert (past.immediate, future.immediate) == (True, False)
    assert future.describe() == 'sleep "launch" until 1970-01-12 13:46:45 UTC'
    assert past.describe() == "sleep until 1970-01-12 13:46:35 UTC"
    opened.execution.unwind()


def test_timers_of_asyncio_are_waits_like_any_other() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async with asyncio.timeout(9):
            await asyncio.sleep(5)

    opened, operations = taken(workflow)
    assert [type(each) for each in operations] == [TimerOperation, TimerOperation]
    assert [(each.kind, each.location, each.deadline) for each in operations] == [
        ("sleep", "timer", STARTED_AT + 9),
        ("sleep", "timer#2", STARTED_AT + 5),
    ]
    opened.execution.deliver(Entry(location="timer#2", kind="sleep", epoch=1, n=1, at=STARTED_AT + 5))
    assert opened.execution.finished
    assert operations[0].dead
    assert operations[0].cancelled()


def test_a_timer_that_was_cancelled_before_the_run_was_idle_is_never_handed_out() -> None:
    async def workflow(ctx: Ctx) -> Any:
        handle = asyncio.get_running_loop().call_later(5, print)
        handle.cancel()
        await ctx.sleep(1)

    opened, operations = taken(workflow)
    assert [type(each) for each in operations] == [SleepOperation]
    opened.execution.unwind()


def test_sleeping_costs_one_entry_and_no_time_before_it() -> None:
    async def workflow(ctx: Ctx) -> Any:
        before = ctx.now()
        await ctx.sleep(3600 * 24 * 30)
        return ctx.now() - before

    assert check_replays(workflow, seeds=range(4)) == {"returned 2592000.0"}


def test_a_message_to_another_run_has_an_id_that_repeats_with_its_record() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await SendOperation(ctx.execution, "run-2", "go", '"hello"', 5.0)
        return "sent"

    opened, [send] = taken(workflow)
    assert (send.run_id, send.signal, send.body, send.delay) == ("run-2", "go", '"hello"', 5.0)
    assert recorded_send_from(send.record_text(Stamp(7, None))).message_id == "run-1:send:7"
    opened.execution.deliver(Entry(location="send", kind="send", epoch=1, n=1, at=STARTED_AT))
    assert opened.result == "returned 'sent'"


def test_a_long_message_id_is_hashed() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def branch(ctx: Ctx) -> None:
            await SendOperation(ctx.execution, "run-2", "go", "1")

        await ctx.join("j" * 300, {"ü": branch})

    opened, [send] = taken(workflow)
    first, second = (recorded_send_from(send.record_text(Stamp(epoch, None))).message_id for epoch in (7, 8))
    assert first.isascii()
    assert len(first) < 100
    assert first != second
    opened.execution.unwind()
