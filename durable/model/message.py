"""A message of a run's mailbox, as it is sent and stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MessageKind = Literal[
    "signal", "update", "event", "result", "child", "review", "cancel", "continue", "callback", "webhook", "entity"
]

REPORTS: Final[frozenset[MessageKind]] = frozenset({"result", "child", "entity", "event", "callback"})
"""Kinds that come of what the run itself has begun: one that is late is no message that got lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """Accepted for one run; consumed when a valid entry of the run names its id."""

    id: str
    name: str
    body: str
    """JSON text."""
    arrived_at: float
    """When the queue accepted it, seconds since 1970 (SQS: SentTimestamp)."""
    sequence: str = ""
    """Breaks ties between messages of one moment (SQS FIFO: SequenceNumber)."""
    kind: MessageKind = "signal"

    @property
    def channel(self) -> str:
        """What waits name: `signal:approve`."""
        return f"{self.kind}:{self.name}"

    @property
    def awaits_consumption(self) -> bool:
        """Whether somebody sent it for the code to read; the others report what the run has begun elsewhere."""
        return self.kind not in REPORTS

    @property
    def order(self) -> tuple[float, str, str]:
        """Sorts messages by arrival."""
        return (self.arrived_at, self.sequence.zfill(20), self.id)
