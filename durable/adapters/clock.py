"""Real time and real randomness: the only place that reads them."""

from __future__ import annotations

import time
from secrets import randbits
from typing import TYPE_CHECKING

from durable.model.ids import ulid

if TYPE_CHECKING:
    from durable.ports import Clock


class SystemClock:
    """Implements `Clock` by the machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


class Ulids:
    """Implements `Ids`: ULIDs of the clock's time and the system's randomness."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self) -> str:
        return ulid(int(self._clock.now() * 1000), randbits(80))
