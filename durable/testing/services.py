"""The services under a test environment: in memory, unless a test brings others."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - ids must repeat, so their entropy is seeded
from typing import TYPE_CHECKING, Final, Protocol

from durable.adapters.memory import (
    MemoryBlobs,
    MemoryRunQueue,
    MemoryStepQueue,
    MemoryStore,
    MemoryTimers,
    VirtualClock,
)
from durable.adapters.signing import TextSigning
from durable.model.ids import ulid
from durable.ports import Blobs, Ports, RunQueue, Signing, StepQueue, Store, Timers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.memory import Received
    from durable.ports import Ids


class Pending(Protocol):
    """A message in a queue."""

    @property
    def body(self) -> str:
        """The envelope's text."""
        ...


class Source(Protocol):
    """A queue as an event source mapping sees it."""

    def receive(self, max_messages: int = ..., /) -> Sequence[Received]:
        """Takes visible messages and hides them for the visibility timeout."""
        ...

    def acknowledge(self, receipt: str, /) -> bool:
        """Deletes the message of a delivery."""
        ...

    def change_visibility(self, receipt: str, seconds: float, /) -> bool:
        """Hides the message of a delivery for so many seconds from now."""
        ...

    @property
    def pending(self) -> Sequence[Pending]:
        """Everything that is not acknowledged yet."""
        ...

    def next_visible_at(self) -> float | None:
        """The moment from which `receive` has something to give."""
        ...


class SourceOfRuns(RunQueue, Source, Protocol):
    """The runs queue, both ends of it."""


class SourceOfSteps(StepQueue, Source, Protocol):
    """The queue of the workers, both ends of it."""


class SourceOfTimers(Timers, Source, Protocol):
    """The timers queue, both ends of it, and the one-time schedules."""

    def next_schedule_at(self) -> float | None:
        """When the next schedule fires."""
        ...

    def fire_schedules(self) -> int:
        """Sends the bodies of due schedules to the runs queue."""
        ...


PUBLIC_URL: Final = "https://durable.test"
SIGNED_WITH: Final = "not a secret: it signs the tokens of tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What orchestrators and clients of one environment share."""

    clock: VirtualClock
    store: Store
    runs: SourceOfRuns
    timers: SourceOfTimers
    new_id: Ids
    steps: SourceOfSteps
    blobs: Blobs = field(default_factory=MemoryBlobs)
    signing: Signing = field(default_factory=lambda: TextSigning(SIGNED_WITH))
    public_url: str | None = PUBLIC_URL

    @property
    def ports(self) -> Ports:
        """The engine's view."""
        return Ports(
            store=self.store,
            runs=self.runs,
            timers=self.timers,
            clock=self.clock,
            new_id=self.new_id,
            blobs=self.blobs,
            steps=self.steps,
            signing=self.signing,
            public_url=self.public_url,
        )

    @property
    def memory(self) -> MemoryStore:
        """The store with all that is in it to be seen; TypeError where a test has brought another one."""
        if not isinstance(self.store, MemoryStore):
            raise TypeError("this needs the store in memory, and the environment was given another one")
        return self.store


class SeededIds:
    """ULIDs of the virtual clock whose random part is seeded: the same in every run of a test."""

    def __init__(self, clock: VirtualClock, seed: int = 0) -> None:
        self._clock = clock
        self._random = Random(seed)

    def __call__(self) -> str:
        return ulid(int(self._clock.now() * 1000), self._random.getrandbits(80))


VISIBILITY_SECONDS = 150.0
"""Of both queues, as the template has it for the orchestrator's default timeout of 120 s."""


def in_memory(*, seed: int = 0) -> Services:
    """Everything in this process, empty, at the start of 2026."""
    clock = VirtualClock()
    new_id = SeededIds(clock, seed)
    runs = MemoryRunQueue(clock, visibility_timeout=VISIBILITY_SECONDS)
    timers = MemoryTimers(clock, new_id, runs, visibility_timeout=VISIBILITY_SECONDS)
    steps = MemoryStepQueue(clock, visibility_timeout=VISIBILITY_SECONDS)
    return Services(clock=clock, store=MemoryStore(), runs=runs, timers=timers, new_id=new_id, steps=steps)
