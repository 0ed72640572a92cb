"""A wait for an event: what it takes, and what the code gets."""

from typing import Any

import pytest
from pydantic import BaseModel

from durable.channels import Event
from durable.errors import UndecodableHistory, WaitTimeout
from durable.execution import Returned
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.subscription import Awaited, MatchKey
from durable.ops.effect import Stamp
from durable.ops.event import EventOperation
from tests.properties.virtual_engine import STARTED_AT, Ctx, Opened, open_run


class Settled(BaseModel):
    id: str


SETTLED = Event("settled", Settled)
MATCH = (MatchKey((("id",),), "a"),)
STAMP = Stamp(1, None)


def message(body: str, location: str = "settled") -> StoredMessage:
    return StoredMessage(id="evt:e:h", name=location, kind="event", body=body, arrived_at=STARTED_AT + 1)


def waiting(**options: Any) -> tuple[Opened, EventOperation]:
    async def workflow(ctx: Ctx) -> Any:
        return await EventOperation(ctx.execution, SETTLED, MATCH, **options)

    opened = open_run(workflow)
    opened.execution.advance()
    [operation] = opened.execution.take()
    assert isinstance(operation, EventOperation)
    return opened, operation


def entry(operation: EventOperation, mark: str = "", **content: Any) -> Entry:
    n = 1 if mark else 2
    return Entry(
        location=operation.location, kind="wait", mark=mark, epoch=1, n=n, at=STARTED_AT, fn=operation.fn, **content
    )


def listed(**options: Any) -> tuple[Opened, EventOperation]:
    opened, operation = waiting(**options)
    opened.execution.deliver(entry(operation, "?1", value=operation.opening(STAMP)))
    return opened, operation


def test_it_says_all_that_it_takes_to_be_listed() -> None:
    _, operation = waiting()
    assert operation.opening(STAMP) == Awaited(event="settled", match=MATCH).to_text()
    assert (operation.channels, operation.describe()) == (("event:settled",), 'event "settled"')


def test_it_takes_the_first_message_that_matches_once_it_is_listed() -> None:
    _, operation = waiting()
    wrong, right = message('{"id": "b"}'), message('{"id": "a"}')
    assert operation.claim([right]) == ()
    _, operation = listed()
    assert operation.claim([wrong, right]) == (right,)


def test_a_payload_that_cannot_be_read_is_not_consumed() -> None:
    _, operation = listed()
    with pytest.raises(UndecodableHistory):
        operation.on_messages([message('{"id": ["a"]}')])


def test_the_code_gets_the_payload() -> None:
    opened, operation = listed()
    opened.execution.deliver(entry(operation, messages=(message('{"id": "a"}'),)))
    outcome = opened.execution.outcome
    assert isinstance(outcome, Returned)
    assert outcome.value == Settled(id="a")


def test_when_the_time_is_up_the_code_gets_the_default_or_an_error() -> None:
    for options, expected in (({"default": 7}, 7), ({}, WaitTimeout)):
        _, operation = listed(timeout=5.0, **options)
        assert operation.deadline == STARTED_AT + 5
        value, error = operation.on_deadline()
        content = entry(operation, value=value, error=error)
        if expected is WaitTimeout:
            with pytest.raises(WaitTimeout):
                operation.decode(content)
        else:
            assert operation.decode(content) == expected


def test_a_timeout_of_nothing_still_looks() -> None:
    _, operation = waiting(timeout=0)
    assert (operation.immediate, operation.looks_first) == (True, True)
