"""The waits of one turn, kept so that the next one to resolve is found without looking at all of them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

from durable.ops.dispatched import DispatchedOperation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from durable.ops.operation import WaitOperation


class Waits:
    """Operations that wait for messages, a moment, or whichever comes first. Ten thousand timers are no special case."""

    def __init__(self) -> None:
        self._waits: dict[str, WaitOperation] = {}
        self._timed: list[tuple[float, int, WaitOperation]] = []
        self._immediate: list[tuple[int, WaitOperation]] = []
        self._listening: defaultdict[str, dict[str, WaitOperation]] = defaultdict(dict)
        self._unopened: list[DispatchedOperation] = []
        """What they find when they are dispatched beats a deadline that has passed: until then they wait for nothing."""

    def __iter__(self) -> Iterator[WaitOperation]:
        """In the order in which they were taken in, without those that the workflow has cancelled."""
        self._take_opened()
        self._waits = {key: wait for key, wait in self._waits.items() if not wait.dead}
        return iter(list(self._waits.values()))

    def __bool__(self) -> bool:
        return any(not wait.dead for wait in self._waits.values())

    def add(self, wait: WaitOperation) -> None:
        """Takes in a wait that the workflow has come to."""
        if isinstance(wait, DispatchedOperation) and wait.looks_first and wait.open is None:
            self._unopened.append(wait)
            return
        self._waits[wait.key] = wait
        if wait.deadline is not None:
            if wait.immediate:
                heapq.heappush(self._immediate, (wait.seq, wait))
            else:
                heapq.heappush(self._timed, (wait.deadline, wait.seq, wait))
        for channel in wait.channels:
            self._listening[channel][wait.key] = wait

    def put_off(self, wait: WaitOperation, deadline: float) -> None:
        """Gives a wait more time."""
        wait.deadline = deadline
        heapq.heappush(self._timed, (deadline, wait.seq, wait))

    def remove(self, wait: WaitOperation) -> None:
        """Drops a wait that is about to be recorded."""
        del self._waits[wait.key]
        for channel in wait.channels:
            del self._listening[channel][wait.key]

    def candidates(self, channels: Iterable[str]) -> Iterator[WaitOperation]:
        """Every wait that may resolve next: those that listen to these channels, and the first timer of each sort."""
        self._take_opened()
        seen: set[str] = set()
        for channel in channels:
            listeners = [self._listening.get(channel, {})]
            if channel.startswith("signal:"):
                listeners.append(self._listening.get("*", {}))
            for key, wait in [item for waits in listeners for item in waits.items()]:
                if key not in seen and self._counts(wait):
                    seen.add(key)
                    yield wait
        for timer in (self._first_timed(), self._first_immediate()):
            if timer is not None and timer.key not in seen:
                yield timer

    @property
    def next_deadline(self) -> float | None:
        """When the first timer is due, seconds since 1970."""
        self._take_opened()
        immediate, timed = self._first_immediate(), self._first_timed()
        deadlines = [wait.deadline for wait in (immediate, timed) if wait is not None and wait.deadline is not None]
        return min(deadlines, default=None)

    def _take_opened(self) -> None:
        if self._unopened:
            waits, self._unopened = self._unopened, []
            for wait in waits:
                self.add(wait)

    def _first_timed(self) -> WaitOperation | None:
        while self._timed:
            deadline, _, wait = self._timed[0]
            if self._counts(wait) and wait.deadline == deadline:
                return wait
            heapq.heappop(self._timed)
        return None

    def _first_immediate(self) -> WaitOperation | None:
        while self._immediate and not self._counts(self._immediate[0][1]):
            heapq.heappop(self._immediate)
        return self._immediate[0][1] if self._immediate else None

    def _counts(self, wait: WaitOperation) -> bool:
        return not wait.dead and self._waits.get(wait.key) is wait
