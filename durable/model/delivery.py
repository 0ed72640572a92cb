"""A task on its way to a worker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDelivery:
    """One delivery of a message of a steps queue."""

    id: str
    """The queue's name for this delivery; who names it may acknowledge it or hide it longer."""
    body: str
    receive_count: int = 1
    """How often the message was delivered, this time included."""
