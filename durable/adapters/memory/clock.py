"""A clock that moves only when it is told to, and while somebody sleeps."""

from __future__ import annotations

from threading import Lock


class VirtualClock:
    """Implements `Clock` without waiting; safe to share between threads."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self._lock = Lock()
        self._start = now
        self._now = now

    def now(self) -> float:
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        with self._lock:
            return self._now - self._start

    def sleep(self, seconds: float) -> None:
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Moves time on."""
        if seconds < 0:
            raise ValueError(f"time does not go back, and {seconds} s is negative")
        with self._lock:
            self._now += seconds

    def advance_to(self, moment: float) -> None:
        """Moves time on to a moment; does nothing if it has passed."""
        with self._lock:
            self._now = max(self._now, moment)
