"""The safety net: finds what should have gone on and did not, and deletes what is over. A healthy system needs the second only.

| what is found                                               | by                                | what happens                     |
|-------------------------------------------------------------|-----------------------------------|----------------------------------|
| a timer, start, wake or request to cancel that was lost     | `due_at` has passed, no live lease | a wake                           |
| a run whose invocation died                                 | the same: its lease has run out   | a wake                           |
| an ended run that owes others its end                       | the same, by its outbox           | a wake                           |
| a run that has reached its timeout, and whose timer was lost | the same                          | a wake                           |
| a run that other code has blocked                           | its code version                  | a wake                           |
| a lane whose holders may be dead, or whose grant was lost   | the lane's `due_at`               | it is looked after in the background |
| an ended run whose retention is over                        | its `due_at`                      | it is deleted                    |
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from durable.engine.retention import expire
from durable.model.envelope import Pump, Wake

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.ports import Ports

GRACE: Final = 30.0
"""How long a due run is left to its own timer, in seconds."""

LIMIT: Final = 1_000
"""How many of each kind one sweep sees to; the next follows within a minute."""

LOOKED_AT: Final = 5
"""So many times the limit of due runs are looked at: those that are at work are due too, and must hide nobody."""

TOGETHER: Final = 100
"""How many are handed to the threads of a sweep at a time."""

RESERVE: Final = 5.0
"""Seconds of an invocation in which nothing is begun any more: one request may take so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What a sweep did."""

    woken: int
    """Runs that were due and had not been woken, or whose owner had died."""
    unblocked: int
    """Blocked runs that are tried once under newly deployed code."""
    pumped: int = 0
    """Lanes where somebody is to be asked whether it lives, or that owe something to those who wait."""
    deleted: int = 0
    """Ended runs whose time was over."""


class Maintenance:
    """Runs every minute; bounded, and safe to run twice at once, because a wake or deletion too many does no harm."""

    def __init__(self, ports: Ports, *, code_version: str, parallel: int = 1) -> None:
        self._ports = ports
        self._code_version = code_version
        self._parallel = parallel

    def sweep(self, *, limit: int = LIMIT, remaining: float = math.inf) -> Sweep:
        """Sees to at most `limit` of each kind, and begins nothing in the last of the `remaining` seconds.

        Wakes go through the timers queue, which has no groups: a group whose handler crashes again and again does not
        hold the wakes of its own run up. What fails at one is raised at the end, when the others have been seen to.
        """
        store, now = self._ports.store, self._ports.clock.now()
        work = _Work(self._ports, limit, self._ports.clock.monotonic() + remaining - RESERVE, self._parallel)
        woken = work.see_to(lambda: store.due_runs(before=now - GRACE, limit=limit * LOOKED_AT), self._wake_if_orphaned)
        unblocked = work.see_to(lambda: store.blocked_runs(not_under=self._code_version, limit=limit), self._try_again)
        pumped = work.see_to(lambda: store.due_lanes(before=now, limit=limit), self._pump)
        deleted = work.see_to(
            lambda: store.expired_runs(before=now, limit=limit), lambda run_id: expire(self._ports, run_id)
        )
        if work.troubles:
            raise work.troubles[0]
        return Sweep(woken=woken, unblocked=unblocked, pumped=pumped, deleted=deleted)

    def _wake_if_orphaned(self, run_id: str) -> bool:
        """A run that is at work may be due as well: nobody changes that before it settles."""
        run, now = self._ports.store.get(run_id), self._ports.clock.now()
        if run is None or run.due_at is None or run.due_at > now - GRACE or run.held_at(now):
            return False
        return (not run.ended or run.outbox is not None) and self._wake(run_id, "overdue")

    def _try_again(self, run_id: str) -> bool:
        """The index is a moment behind: a run may be woken that has just been tried, and is then left as it is."""
        return self._wake(run_id, "new code")

    def _pump(self, lane: str) -> bool:
        self._ports.timers.send(Pump(lane=lane, id=self._ports.new_id()))
        return True

    def _wake(self, run_id: str, reason: str) -> bool:
        self._ports.timers.send(Wake(run_id=run_id, id=self._ports.new_id(), reason=reason))
        return True


class _Work:
    """What one sweep may still do, and what has gone wrong."""

    def __init__(self, ports: Ports, limit: int, ends: float, parallel: int) -> None:
        self.troubles: list[Exception] = []
        self._clock = ports.clock
        self._limit = limit
        self._ends = ends
        self._parallel = parallel

    def see_to(self, find: Callable[[], Sequence[str]], act: Callable[[str], bool]) -> int:
        """How many of what is found were acted on. Trouble with one is kept for later."""
        try:
            found = find()
        except Exception as trouble:  # noqa: BLE001 - one kind's trouble is no other's
            self.troubles.append(trouble)
            return 0
        attempt = partial(self._attempt, act)
        if self._parallel == 1 or len(found) == 1:
            return sum(islice((acted for acted in map(attempt, found) if acted), self._limit))
        done = at = 0
        with ThreadPoolExecutor(self._parallel, "durable-sweep") as pool:
            while at < len(found) and done < self._limit and self._has_time:
                together = found[at : at + min(TOGETHER, self._limit - done)]
                done += sum(pool.map(attempt, together))
                at += len(together)
        return done

    @property
    def _has_time(self) -> bool:
        return self._clock.monotonic() < self._ends

    def _attempt(self, act: Callable[[str], bool], name: str) -> bool:
        try:
            return self._has_time and act(name)
        except Exception as trouble:  # noqa: BLE001 - nor is one run's
            self.troubles.append(trouble)
            return False
