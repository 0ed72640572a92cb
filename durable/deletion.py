"""Deleting a run that has ended: who may still need it, and in which order things go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.run import Watcher
from durable.records import last_of_lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from durable.model.run import Run
    from durable.ports import Ports


def delete(ports: Ports, run: Run) -> bool:
    """Deletes everything about an ended run; False if it is reopened first, or has yet to tell others of its end.

    It is marked first, so that no retry reopens it half deleted, and its record goes last: a deletion that was cut short
    is found and completed by maintenance. Twice, also at once, is harmless.
    """
    if not ports.store.mark_for_deletion(run.id, epoch=run.epoch, now=ports.clock.now()):
        return False
    ports.blobs.delete(f"{run.id}/")
    ports.store.delete_run(run.id)
    return True


def who_needs(ports: Ports, run: Run) -> str | None:
    """Why a run must stay that has ended, in words; None if it may go."""
    if run.outbox is not None:
        return "it has yet to tell others of its end"
    if leaves_messages(ports, run):
        return f'its successor "{run.successor}" has not copied its messages'
    told = () if run.successor is not None else watchers_of(ports, run)  # of a lineage only the last tells anybody
    waiting = next((one.run_id for one in told if _waits(ports, one)), None)
    return None if waiting is None else f'run "{waiting}" waits for it'


def leaves_messages(ports: Ports, run: Run) -> bool:
    """Whether its successor has yet to copy the messages that it was left."""
    successor = None if run.successor is None else ports.store.get(run.successor)
    return successor is not None and successor.carries is not None and successor.carries.run_id == run.id


def watchers_of(ports: Ports, run: Run) -> Iterator[Watcher]:
    """Whom the run tells of its end: its parent, and whoever else waits for it."""
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
