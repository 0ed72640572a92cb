"""The safety net: finds runs that should have been woken and were not. A healthy system never needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from durable.model.envelope import Pump, Wake

if TYPE_CHECKING:
    from durable.model.envelope import Envelope
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
        wakes of its own run up. What fails at one run is raised at the end, when the others have been seen to.
        """
        now, store, new_id = self._ports.clock.now(), self._ports.store, self._ports.new_id
        troubles: list[Exception] = []

        def send(envelope: Envelope) -> int:
            try:
                self._ports.timers.send(envelope)
            except Exception as trouble:  # noqa: BLE001 - one run's trouble is no other's; it is raised below
                troubles.append(trouble)
                return 0
            return 1

        overdue = store.due_runs(before=now - GRACE, limit=limit)
        woken = sum(send(Wake(run_id=run_id, id=new_id(), reason="overdue")) for run_id in overdue)
        # The index is a moment behind: a run may be woken that has just been tried, and is then left as it is.
        blocked = store.blocked_runs(not_under=self._code_version, limit=limit)
        unblocked = sum(send(Wake(run_id=run_id, id=new_id(), reason="new code")) for run_id in blocked)
        pumped = sum(send(Pump(lane=name, id=new_id())) for name in store.due_lanes(before=now, limit=limit))
        if troubles:
            raise troubles[0]
        return Sweep(woken=woken, unblocked=unblocked, pumped=pumped)
