"""Sends that a run has recorded: performed under a deterministic id, so that a repetition is recognised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from durable.model.envelope import Deliver

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.ops.send import SendOperation
    from durable.ports import Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSend:
    """The value of a send's entry: all that it takes to send the message again."""

    to: str
    message_id: str
    name: str
    body: str
    delay: float


_ADAPTER: TypeAdapter[RecordedSend] = TypeAdapter(RecordedSend)


def to_record(operation: SendOperation, epoch: int) -> str:
    """What the entry of a send holds."""
    send = RecordedSend(
        to=operation.run_id,
        message_id=operation.message_id(epoch),
        name=operation.signal,
        body=operation.body,
        delay=operation.delay,
    )
    return _ADAPTER.dump_json(send).decode()


def send_recorded(ports: Ports, entry: Entry) -> None:
    """Sends what the entry says. Twice is harmless: the receiver consumes one message of an id."""
    send = _ADAPTER.validate_json(entry.value or "")
    envelope = Deliver(run_id=send.to, id=send.message_id, name=send.name, body=send.body)
    if send.delay > 0:
        ports.timers.send(envelope, delay=send.delay)
    else:
        ports.runs.send(envelope)
