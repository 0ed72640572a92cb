"""What goes on in one seed, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.memory import Received
    from durable.adapters.memory.queues import MemoryQueue
    from durable.testing.simulation.baton import Actor
    from durable.testing.simulation.fleet import Container


@dataclass(slots=True, eq=False)
class Activity:
    """An actor and what it works on."""

    number: int
    actor: Actor
    container: Container | None
    """None of maintenance and of clients."""
    source: MemoryQueue | None
    received: Sequence[Received]
    resumes_at: float = 0.0
    waits_for_load: bool = False
    """Frozen until somebody else is between two pages of the history: the worst moment to write."""


@dataclass(slots=True)
class Outcome:
    """What a seed came to."""

    events: int = 0
    calls: int = 0
    kills: int = 0
    freezes: int = 0
    trace: list[str] = field(default_factory=list[str])
