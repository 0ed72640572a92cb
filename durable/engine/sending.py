"""Sends that a run has recorded: performed under a deterministic id, so that a repetition is recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.envelope import Deliver
from durable.model.sending import recorded_send_from

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.ports import Ports


def send_recorded(ports: Ports, entry: Entry) -> None:
    """Sends what the entry says. Twice is harmless: the receiver consumes one message of an id."""
    send = recorded_send_from(entry.value)
    envelope = Deliver(
        run_id=send.to, id=send.message_id, name=send.name, body=send.body, kind=send.kind, start=send.start
    )
    if send.delay > 0:
        ports.timers.send(envelope, delay=send.delay)
    else:
        ports.runs.send(envelope)
