"""What goes on in one seed, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.memory import MemoryRunQueue, MemoryTimers, Received
    from durable.engine.orchestrator import Orchestrator
    from durable.testing.simulation.baton import Actor


@dataclass(slots=True, eq=False)
class Activity:
    """An actor and what it works on."""

    number: int
    actor: Actor
    container: Orchestrator | None
    source: MemoryRunQueue | MemoryTimers | None
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
