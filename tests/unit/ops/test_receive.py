"""Waits for signals: what they take, and what the code gets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from durable.errors import UndecodableHistory, WaitTimeout
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.ops.receive import ReceiveOperation
from durable.options import MISSING
from tests.properties.virtual_engine import STARTED_AT, Ctx, Opened, open_run


def stored(id_: str, name: str, body: str = "1", after: float = 1.0, **more: Any) -> StoredMessage:
    return StoredMessage(id=id_, name=name, body=body, arrived_at=STARTED_AT + after, **more)


def waiting(types: dict[str, Any], **options: Any) -> tuple[Opened, ReceiveOperation]:
    """A run that waits for signals, and its wait."""

    async def workflow(ctx: Ctx) -> Any:
        return await ReceiveOperation(ctx.execution, None, types, **options)

    opened = open_run(workflow)
    opened.execution.advance()
    [operation] = opened.execution.take()
    assert isinstance(operation, ReceiveOperation)
    return opened, operation


def received(types: dict[str, Any], messages: Sequence[StoredMessage], **options: Any) -> Opened:
    opened, wait = waiting(types, **options)
    claimed = wait.claim(messages)
    content: dict[str, Any] = {"messages": claimed, "value": wait.on_messages(claimed)}
    if not claimed:
        value, error = wait.on_deadline()
        content = {"value": value, "error": error}
    opened.execution.deliver(
        Entry(location=wait.location, kind=wait.kind, epoch=1, n=1, at=STARTED_AT + 5, fn=wait.fn, **content)
    )
    return opened


def test_a_wait_takes_the_earliest_message_of_its_signals() -> None:
    _, wait = waiting({"approve": int, "reject": int})
    messages = [stored("m1", "other"), stored("m2", "reject"), stored("m3", "approve")]
    assert [message.id for message in wait.claim(messages)] == ["m2"]
    assert wait.claim(messages[:1]) == ()
    assert wait.channels == ("signal:approve", "signal:reject")


def test_without_names_it_takes_any_signal_but_no_other_kind_of_message() -> None:
    _, wait = waiting({})
    assert wait.channels == ("*",)
    update = stored("m1", "approve", kind="update")
    assert [message.id for message in wait.claim([update, stored("m2", "approve")])] == ["m2"]


def test_a_batch_takes_as_many_as_it_asks_for() -> None:
    messages = [stored(f"m{place}", "go", str(place)) for place in range(5)]
    opened = received({"go": int}, messages, shape="batch", count=3)
    assert [message.body for message in opened.execution.outcome.value] == [0, 1, 2]  # type: ignore[union-attr]


def test_the_code_gets_a_message_with_its_body_by_declared_type() -> None:
    opened = received({"go": tuple[int, int]}, [stored("m1", "go", "[1, 2]", after=3)])
    message = opened.execution.outcome.value  # type: ignore[union-attr]
    assert (message.id, message.name, message.body) == ("m1", "go", (1, 2))
    assert message.sent_at == datetime.fromtimestamp(STARTED_AT + 3, UTC)


def test_or_the_body_alone() -> None:
    assert received({"go": int}, [stored("m1", "go", "7")], shape="body").result == "returned 7"


def test_a_body_that_does_not_fit_is_found_before_it_is_consumed() -> None:
    _, wait = waiting({"go": int})
    with pytest.raises(UndecodableHistory, match=r'message "m1".*cannot be read as int'):
        wait.on_messages(wait.claim([stored("m1", "go", '"seven"')]))


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({"default": None}, "returned None"),
        ({"default": "nothing"}, "returned 'nothing'"),
        ({"shape": "batch"}, "returned []"),
        ({"default": MISSING}, 'raised WaitTimeout the wait at "go" reached its deadline'),
    ],
)
def test_at_the_deadline_it_gives_the_default_or_raises(options: dict[str, Any], outcome: str) -> None:
    assert received({"go": int}, [], timeout=5.0, **options).result == outcome


def test_a_wait_timeout_is_a_timeout_error() -> None:
    assert issubclass(WaitTimeout, TimeoutError)


@pytest.mark.parametrize(("timeout", "deadline", "immediate"), [(None, None, False), (5, 5, False), (0, 0, True)])
def test_its_deadline_is_counted_from_the_latest_event(timeout: Any, deadline: Any, immediate: bool) -> None:
    _, wait = waiting({"go": int}, timeout=timeout)
    assert wait.deadline == (None if deadline is None else STARTED_AT + deadline)
    assert wait.immediate is immediate


def test_it_says_what_it_waits_for() -> None:
    assert waiting({"go": int}, timeout=5.0)[1].describe() == 'signal "go" until 1970-01-12 13:46:45 UTC'
    assert waiting({"go": int, "stop": int})[1].describe() == 'signal "go" or "stop"'
    assert waiting({})[1].describe() == "any signal"


def test_it_takes_its_signals_names() -> None:
    assert waiting({"go": int})[1].location == "go"
    assert waiting({"go": int, "stop": int})[1].location == "go|stop"
    assert waiting({})[1].location == "message"
