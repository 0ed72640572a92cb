"""Deletes runs whose time is over, and never one that somebody still needs.

| the run                                              | what happens                                                       |
|------------------------------------------------------|--------------------------------------------------------------------|
| is open, or has yet to tell others of its end        | nothing                                                            |
| has a successor that has not copied its messages     | looked at again later                                              |
| belongs to a lineage that goes on                    | its record stays: older ids lead to the end; all else of it goes   |
| belongs to a lineage that has ended                  | goes when the last of the lineage does                             |
| is waited for by an open run (its parent, a watcher) | looked at again later                                              |
| is needed by nobody                                  | marked, so that no retry reopens it; then all goes, its record last |

A deletion that is cut short leaves the record, and with it the moment at which the run was to go: the next sweep
goes on. A run that must stay is put off for a day, so that it does not stand in the way of others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable.deletion import delete, leaves_messages, who_needs
from durable.errors import UnknownWorkflow
from durable.records import last_of_lineage

if TYPE_CHECKING:
    from durable.app import App
    from durable.model.run import Run, Settlement
    from durable.ports import Ports

LATER: Final = 86_400.0
"""When a run that is still needed is looked at again, in seconds."""


def retained(app: App, run: Run, settlement: Settlement) -> Settlement:
    """The same settlement; of a run that ends and owes nothing, with the moment at which it may go."""
    if not settlement.terminal or settlement.outbox is not None:
        return settlement
    ended = replace(run, status=settlement.status, finished_at=settlement.at)
    return replace(settlement, due_at=kept_until(app, ended))


def kept_until(app: App, run: Run) -> float | None:
    """When an ended run may go, by what the deployed code says of its workflow; None if it is kept for good."""
    try:
        kept = app.find(run.workflow, run.version).retention.get(run.status)
    except UnknownWorkflow:
        return None
    return None if kept is None or run.finished_at is None else run.finished_at + kept


def expire(ports: Ports, run_id: str) -> bool:
    """Deletes a run whose time is over, unless it is needed; whether it is gone. Twice, also at once, is harmless."""
    run = ports.store.get(run_id)
    now = ports.clock.now()
    if run is None or not run.ended or run.outbox is not None or run.due_at is None or run.due_at > now:
        return False  # the index is a moment behind
    needed_until = None if run.deleting else _needed_until(ports, run, now)
    if needed_until is None:
        return delete(ports, run)
    if run.successor is not None and not leaves_messages(ports, run):
        ports.store.empty_run(run.id)
    ports.store.postpone_deletion(run.id, epoch=run.epoch, until=needed_until)
    return False


def _needed_until(ports: Ports, run: Run, now: float) -> float | None:
    """When to look again at a run that somebody needs; None if nobody does."""
    if who_needs(ports, run) is not None:
        return now + LATER
    last = None if run.successor is None else last_of_lineage(ports, run.successor)
    if last is None:
        return None
    if not last.ended or last.outbox is not None or last.due_at is None:
        return now + LATER
    return last.due_at if last.due_at > now else None
