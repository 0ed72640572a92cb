"""Reviews in the replay core: whose decision counts, and what happens at the deadline."""

from __future__ import annotations

from typing import Any

import pytest

from durable import codec
from durable.errors import WaitTimeout
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.review import review_from
from durable.ops.breakpoint import BreakpointOperation
from durable.ops.review import ReviewOperation
from durable.values import Review
from tests.properties.virtual_engine import STARTED_AT, Ctx, Opened, open_run


def opened_review(**options: Any) -> tuple[Opened, ReviewOperation]:
    async def workflow(ctx: Ctx) -> Any:
        try:
            return await ReviewOperation(ctx.execution, "expense", '{"n": 1}', reviewers=["ann"], **options)
        except WaitTimeout as error:
            return str(error)

    opened = open_run(workflow)
    opened.execution.advance()
    [operation] = opened.execution.take()
    assert isinstance(operation, ReviewOperation)
    return opened, operation


def decision(reviewer: str, after: float = 1.0, id_: str = "d") -> StoredMessage:
    body = codec.encode(Review("approved", reviewer, "ok", (("a", "b"),)), Review)
    return StoredMessage(id=id_, name="x", body=body, arrived_at=STARTED_AT + after, kind="review")


def ended(opened: Opened, operation: ReviewOperation, **content: Any) -> Any:
    entry = Entry(location=operation.location, kind="review", epoch=1, n=1, at=STARTED_AT + 9, **content)
    opened.execution.deliver(entry)
    return opened.execution.outcome.value  # type: ignore[union-attr]


def test_it_takes_the_first_decision_of_somebody_who_may_decide() -> None:
    opened, review = opened_review()
    claimed = review.claim([decision("eve", id_="1"), decision("ann", id_="2"), decision("ann", id_="3")])
    assert [message.id for message in claimed] == ["2"]
    value = review.on_messages(claimed)
    assert ended(opened, review, value=value, messages=claimed) == Review("approved", "ann", "ok", (("a", "b"),))


def test_a_message_that_is_no_decision_is_left_alone() -> None:
    _, review = opened_review()
    assert review.claim([StoredMessage(id="1", name="x", body="3", arrived_at=STARTED_AT, kind="review")]) == ()


def test_an_escalation_counts_from_the_opening_and_by_the_arrival_of_the_decision() -> None:
    _, review = opened_review(escalated=[(60.0, ("boss",))])
    assert review.claim([decision("boss", 59.0)]) == ()
    assert review.claim([decision("boss", 60.0)])
    state = review_from(review.state())
    assert (state.artifact, state.opened_at, state.location) == ({"n": 1}, STARTED_AT, "expense")


@pytest.mark.parametrize(
    ("options", "deadline", "outcome"),
    [
        ({}, None, None),
        ({"timeout": 60.0}, 60.0, "expense"),
        ({"timeout": 60.0, "reject_after": 30.0}, 30.0, "rejected"),
        ({"timeout": 30.0, "reject_after": 60.0}, 30.0, "expense"),
        ({"reject_after": 60.0}, 60.0, "rejected"),
    ],
)
def test_what_comes_first_decides_when_nobody_does(options: Any, deadline: float | None, outcome: str | None) -> None:
    opened, review = opened_review(**options)
    assert review.deadline == (None if deadline is None else STARTED_AT + deadline)
    if outcome is None:
        return
    value, error = review.on_deadline()
    result = ended(opened, review, value=value, error=error)
    assert outcome in (result if isinstance(result, str) else result.decision)


def test_a_breakpoint_waits_for_its_own_label_and_has_no_deadline() -> None:
    async def workflow(ctx: Ctx) -> None:
        await BreakpointOperation(ctx.execution, "before")

    opened = open_run(workflow)
    opened.execution.advance()
    [operation] = opened.execution.take()
    assert isinstance(operation, BreakpointOperation)
    assert (operation.channels, operation.deadline, operation.describe()) == (
        ("continue:before",),
        None,
        'breakpoint "before"',
    )
