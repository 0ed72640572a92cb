"""Deletes runs whose time is over, and never one that somebody still needs.

| the run                                              | what happens                                                       |
|------------------------------------------------------|--------------------------------------------------------------------|
| is open, or has yet to tell others of its end        | nothing                                                            |
| has a successor that has not copied its messages     | looked at again later                                              |
| belongs to a lineage that goes on                    | its record stays: older ids lead to the end; all else of it goes   |
| is waited for by an open run (its parent, a watcher) | looked at again later                                              |
| is needed by nobody                                  | marked, so that no retry reopens it; then all goes, its record last |

A deletion that is cut short leaves the record, and with it the moment at which the run was to go: the next sweep
goes on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable.errors import UnknownWorkflow
from durable.lanes import last_of_lineage
from durable.model.run import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if run.successor is not None and not _leaves_messages(ports, run):
        ports.store.empty_run(run.id)
    ports.store.postpone_deletion(run.id, epoch=run.epoch, until=needed_until)
    return False


def delete(ports: Ports, run: Run) -> bool:
    """Deletes everything about an ended run; False if it is reopened first, or has yet to tell others of its end."""
    if not ports.store.mark_for_deletion(run.id, epoch=run.epoch, now=ports.clock.now()):
        return False
    ports.blobs.delete(f"{run.id}/")
    ports.store.delete_run(run.id)
    return True


def who_needs(ports: Ports, run: Run) -> str | None:
    """Why a run must stay that has ended, in words; None if it may go."""
    if run.outbox is not None:
        return "it has yet to tell others of its end"
    if _leaves_messages(ports, run):
        return f'its successor "{run.successor}" has not copied its messages'
    waiting = next((one.run_id for one in _waiting_for(run, ports) if _waits(ports, one)), None)
    return None if waiting is None else f'run "{waiting}" waits for it'


def _needed_until(ports: Ports, run: Run, now: float) -> float | None:
    """When to look again at a run that somebody needs; None if nobody does."""
    if who_needs(ports, run) is not None:
        return now + LATER
    if run.successor is None:
        return None
    last = last_of_lineage(ports, run.successor)
    if last is None:
        return None
    over = last.ended and last.outbox is None and last.due_at is not None
    if not over or last.due_at is None:
        return now + LATER
    return last.due_at if last.due_at > now else None


def _leaves_messages(ports: Ports, run: Run) -> bool:
    successor = None if run.successor is None else ports.store.get(run.successor)
    return successor is not None and successor.carries is not None and successor.carries.run_id == run.id


def _waiting_for(run: Run, ports: Ports) -> Iterator[Watcher]:
    """Who was told of the end of its lineage: before the last of it, nobody was told of anything."""
    if run.successor is not None:
        return
    if run.parent is not None and run.parent_location is not None:
        yield Watcher(run.parent, run.parent_location)
    if run.watched:
        yield from ports.store.watchers(run.lineage or run.id)


def _waits(ports: Ports, watcher: Watcher) -> bool:
    """Whether a run may not have had the end yet: it is at work, was lost at work, or waits for it."""
    run = last_of_lineage(ports, watcher.run_id)
    if run is None or run.ended:
        return False
    at_work = run.lease_owner is not None or run.epoch != run.clean_epoch
    return at_work or not {f"child:{watcher.location}", "*"}.isdisjoint(run.waiting_for)
