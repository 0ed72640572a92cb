"""Announcements: which of them a turn has to store, and which an earlier one has stored."""

from __future__ import annotations

import pytest

from durable.engine.announcing import Situation
from durable.model.chunk import ChunkBody
from durable.model.entry import Entry
from durable.ops.sleep import SleepOperation
from durable.ops.state import Announcement, Chunk, Value, announce
from tests.properties.virtual_engine import STARTED_AT, Ctx, open_run

VALUE = Value("k", "1")
CHUNK = Chunk("s", ChunkBody(text="1", source="", number=1))


def slept(n: int, epoch: int = 1) -> Entry:
    location = "sleep" if n == 1 else f"sleep#{n}"
    return Entry(location=location, kind="sleep", epoch=epoch, n=n, at=STARTED_AT + n)


async def announces(ctx: Ctx) -> None:
    for n in range(4):
        announce(ctx.execution, ctx.execution.live, Value("n", str(n)))
        await SleepOperation(ctx.execution, 1)


def test_an_announcement_tells_where_in_the_history_it_was_made() -> None:
    opened = open_run(announces, [slept(1, epoch=3), slept(2, epoch=5)])
    opened.execution.advance()
    made = [(one.epoch, one.last, one.live) for one in opened.execution.journal.outgoing]
    assert made == [(0, False, False), (3, False, False), (5, True, False)]
    opened.execution.deliver(slept(3, epoch=6))
    assert opened.execution.journal.outgoing[-1].live


@pytest.mark.parametrize(
    ("announcement", "new_code", "stored"),
    [
        (Announcement(VALUE, live=True, last=True, epoch=0), False, False),
        (Announcement(VALUE, live=False, last=True, epoch=5), False, True),
        (Announcement(VALUE, live=False, last=False, epoch=6), False, False),
        (Announcement(VALUE, live=False, last=False, epoch=4), True, False),
        (Announcement(CHUNK, live=False, last=False, epoch=4), True, True),
        (Announcement(CHUNK, live=False, last=True, epoch=4), True, False),
        (Announcement(CHUNK, live=False, last=False, epoch=6), True, False),
    ],
)
def test_what_a_turn_that_ended_in_order_has_stored(announcement: Announcement, new_code: bool, stored: bool) -> None:
    assert Situation(clean_epoch=5, new_code=new_code).stored(announcement) is stored
