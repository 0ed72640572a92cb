"""Sends that a run has recorded: performed under a deterministic id, so that a repetition is recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.envelope import Deliver
from durable.ops.send import recorded_send

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.ports import Ports


def send_recorded(ports: Ports, run_id: str, entry: Entry) -> None:
    """Sends what the entry says. Twice is harmless: the receiver consumes one message of an id."""
    send = recorded_send(run_id, entry)
    envelope = Deliver(run_id=send.to, id=send.message_id, name=send.name, body=send.body)
    if send.delay > 0:
        ports.timers.send(envelope, delay=send.delay)
    else:
        ports.runs.send(envelope)
