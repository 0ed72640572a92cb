"""Lanes in memory: slots, who has them, and who waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.adapters.dynamodb import keys as layout
from durable.adapters.sizes import check_ticket
from durable.model.lane import LaneState, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.memory.partition import Table
    from durable.model.lane import Lane, Ticket


class Lanes:
    """One record a lane, and one a ticket."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, name: str, tickets: int) -> LaneState | None:
        """The lane and the head of its queue."""
        with self._table.lock:
            lane = self._table.lanes.get(name)
            if lane is None:
                return None
            places = sorted((ticket.rank, ticket.holder) for ticket in self._table.tickets.get(name, {}).values())
            return LaneState(lane, [Place(*place) for place in places[:tickets]])

    def find(self, name: str, holder: str) -> Ticket | None:
        """The ticket of one that waits."""
        with self._table.lock:
            return self._table.tickets.get(name, {}).get(holder)

    def write(self, lane: Lane, expected_version: int | None, put: Sequence[Ticket], remove: Sequence[Ticket]) -> bool:
        """Writes the lane and its tickets, or nothing."""
        for ticket in put:
            check_ticket(ticket)
            layout.ticket_key(ticket.holder)
        name = lane.spec.name
        with self._table.lock:
            current = self._table.lanes.get(name)
            if current is None and lane.forgettable:
                return True  # it is gone, by an earlier try or because another was the last
            if current is not None and current.writer == lane.writer:
                return True
            if expected_version != (None if current is None else current.version):
                return False
            waiting = self._table.tickets.setdefault(name, {})
            if any(ticket.holder in waiting for ticket in put):
                return False
            waiting |= {ticket.holder: ticket for ticket in put}
            for ticket in remove:
                waiting.pop(ticket.holder, None)
            if lane.forgettable:
                del self._table.lanes[name]
            else:
                self._table.lanes[name] = lane
            if not waiting:
                del self._table.tickets[name]
            return True

    def due(self, *, before: float, limit: int) -> Sequence[str]:
        """Names of lanes that are due, the longest overdue first."""
        with self._table.lock:
            lanes = list(self._table.lanes.items())
        due = [(lane.due_at, name) for name, lane in lanes if lane.due_at is not None and lane.due_at <= before]
        return [name for _, name in sorted(due)[:limit]]
