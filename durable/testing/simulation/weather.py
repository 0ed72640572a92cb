"""How much goes wrong around the orchestrators of one seed, and the clocks of their machines."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from durable.adapters.memory import VirtualClock
from durable.errors import StoreUnavailable
from durable.testing.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random  # noqa: TID251 - handed in, seeded

SKEW: Final = 2.0
"""How far a machine's clock may be off, in seconds."""


@dataclass(frozen=True, slots=True)
class Weather:
    """How much goes wrong in one seed."""

    faults: int
    """Kills, freezes, lost timers and refused calls, all together."""
    visibility: float
    """Shorter than an invocation in half of the seeds, so that one run's deliveries overlap."""
    ordered: bool
    """Whether the runs queue is FIFO, as it is in AWS; the lease alone must be enough."""
    page_size: int
    short_wait: float
    pace: float
    """How much time passes at an event, at most."""
    watch: float
    """How often a turn looks at the run record while a step runs: where it hardly does, a lost turn writes on for longer."""
    prune_from: int
    fences_kept: int
    skew: float
    """How far clocks are off, at most."""
    unruly: float
    """Share of the messages of a standard queue that come twice or much later."""
    threshold: float
    """Timers further away than this are schedules."""
    deploys_after: float | None
    """When new code is deployed, in seconds from the start."""

    @property
    def roomy(self) -> bool:
        """Whether invocations get through with very many messages."""
        return self.ordered and self.page_size > 100 and self.visibility > 20


def weather_of(random: Random) -> Weather:
    """A third of the seeds is fine: there, maintenance must not be needed."""
    fine = random.random() < 0.3
    return Weather(
        faults=0 if fine else random.randint(1, 8),
        visibility=random.choice([5.0, 25.0]),
        ordered=random.random() < 0.5,
        page_size=random.choice([1, 2, 3, 1000]),
        short_wait=random.choice([0.0, 1.0]),
        pace=1.0 if fine else random.choice([1.0, 3.0]),
        watch=random.choice([2.0, 1_000.0]),
        prune_from=random.choice([1, 4, 10, 50]),
        fences_kept=random.choice([0, 2, 8]),
        # With clocks that are far off, a lease may run out while its turn is still under way: no fine weather.
        skew=random.choice([0.0, 0.5] if fine else [0.0, 0.0, SKEW]),
        unruly=random.choice([0.0, 0.0, 0.2]),
        threshold=random.choice([60.0, 900.0]),
        deploys_after=None if fine or random.random() < 0.6 else random.uniform(0, 60),
    )


class SimulatedClock(VirtualClock):
    """Sleeping is an event like a port call: others go on meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.on_sleep: Callable[[float], None] = self.advance

    def sleep(self, seconds: float) -> None:
        self.on_sleep(max(0.0, seconds))


class SkewedClock:
    """The clock of one machine, which is a little off."""

    def __init__(self, clock: VirtualClock, offset: float) -> None:
        self._clock = clock
        self._offset = offset

    def now(self) -> float:
        return self._clock.now() + self._offset

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class FailedTurns(logging.Handler):
    """Keeps what the engine logs as an error: turns that failed for no fault of the weather."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is None and " is blocked: " in record.getMessage():
            return  # perhaps old code met what new code has recorded: that no run stays so is seen in the end
        if not isinstance(error, StoreUnavailable):
            self.found.append(error or Violation(record.getMessage()))
