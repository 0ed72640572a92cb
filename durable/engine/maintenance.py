"""The safety net: finds runs that should have been woken and were not. A healthy system never needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from durable.model.envelope import Pump, Wake

if TYPE_CHECKING:
    from durable.ports import Ports

GRACE = 30.0
"""How long a due run is left to its own timer, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What a sweep did."""

    woken: int
    """Runs that were due and had not been woken, or whose owner had died."""
    unblocked: int
    """Blocked runs that are tried once under newly deployed code."""
    pumped: int = 0
    """Lanes where somebody is to be asked whether it lives, or that owe something to those who wait."""


class Maintenance:
    """Runs every minute; bounded, and safe to run twice at once, because a wake too many does no harm."""

    def __init__(self, ports: Ports, *, code_version: str) -> None:
        self._ports = ports
        self._code_version = code_version

    def sweep(self, *, limit: int = 100) -> Sweep:
        """Wakes at most `limit` runs of each kind, and has as many lanes looked after.

        Through the timers queue, which has no groups: a group whose handler crashes again and again does not hold the
        wakes of its own run up.
        """
        overdue = self._ports.store.due_runs(before=self._ports.clock.now() - GRACE, limit=limit)
        for run_id in overdue:
            self._wake(run_id, "overdue")
        # The index is a moment behind: a run may be woken that has just been tried, and is then left as it is.
        blocked = self._ports.store.blocked_runs(not_under=self._code_version, limit=limit)
        for run_id in blocked:
            self._wake(run_id, "new code")
        lanes = self._ports.store.due_lanes(before=self._ports.clock.now(), limit=limit)
        for name in lanes:
            self._ports.timers.send(Pump(lane=name, id=self._ports.new_id()))
        return Sweep(woken=len(overdue), unblocked=len(blocked), pumped=len(lanes))

    def _wake(self, run_id: str, reason: str) -> None:
        self._ports.timers.send(Wake(run_id=run_id, id=self._ports.new_id(), reason=reason))
