"""What a simulated workflow brings along: how callers treat it, and what must be true of its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from durable.testing.simulation.workloads.effects import app, effects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from random import Random  # noqa: TID251 - handed in, seeded

    from durable.app import App
    from durable.definitions import Workflow
    from durable.model.run import CancelMode
    from durable.testing.simulation.script import Act
    from durable.testing.simulation.seams import PortCall
    from durable.testing.simulation.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known when a run has ended and everything is quiet."""

    watch: Watch
    fine: bool
    """Whether nothing went wrong in this seed."""
    sent: Sequence[str] = ()
    """Ids of the messages that were accepted."""
    queued: Sequence[str] = ()
    """Bodies in the runs queue."""
    asked: AbstractSet[CancelMode] = frozenset()
    """How the run was asked to end, while it was open."""


def nothing(random: Random) -> None:
    """A workflow without input."""
    del random


def nobody_looks(watch: Watch, call: PortCall) -> None:
    """Nothing else is to be checked after a call."""
    del watch, call


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What clients do in one seed."""

    acts: Sequence[Act]
    last: Sequence[Act] = ()
    """Once all is quiet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One kind of seed: about one run, whose messages the callers make up, or about several that follow a plan."""

    name: str
    check: Callable[[Ending], None]
    """Raises `Violation` where the end is not as it must be."""
    workflow: Workflow[Any, Any] | None = None
    """Of a seed about one run."""
    input: Callable[[Random], Any] = nothing
    plan: Callable[[Random], Plan] | None = None
    """Of a seed about several runs."""
    apps: Sequence[App[Any]] = (app,)
    """What is deployed; the second from some moment on."""
    look: Callable[[Watch, PortCall], None] = nobody_looks
    """Called after every port call: raises `Violation` where something does not hold in that moment."""
    rate: float = 1.0
    """How often something goes wrong: less where a seed makes many calls."""
    pace: float = 1.0
    """How fast time passes: slower where a turn makes many calls, which must fit into an invocation."""
    messages: tuple[int, int] = (2, 6)
    """How many come at least and at most by themselves; more come when the run waits for one."""
    flood: int = 0
    """So many at once, in a few of the seeds: more than a run record can name."""
    resent: float = 0.0
    """Share of the messages that come again, long after the first time."""
    cancels: Sequence[Sequence[CancelMode]] = ()
    """One of these is asked for at some moment."""
    stored: Callable[[int], int] | None = None
    """Entries that may be stored, by how many obsolete ones make a turn prune."""
    deploys: bool = False
    """Whether new code is deployed in any weather; then maintenance is needed in any."""
    many: bool = False
    """Whether how often steps are executed says nothing."""
    executions: Mapping[str, int] = field(default_factory=dict[str, int])
    """Steps whose bodies are executed more than once in a healthy run."""

    def repeated(self) -> Mapping[str, int]:
        """Steps that were executed more often than a healthy run does."""
        if self.many:
            return {}
        return {step: n for step, n in effects.executions.items() if n > self.executions.get(step, 1)}
