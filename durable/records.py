"""What engine, client and tests read of a run in several requests: the pages of its partition, the last of its lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.ids import generation_id, generation_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.run import Run
    from durable.ports import Page, Ports, Store


def pages_of(store: Store, run_id: str, *, mailbox_only: bool = False) -> Sequence[Page]:
    """All pages of a run's partition, or of its mailbox alone, read one after another."""
    pages = [store.load(run_id, mailbox_only=mailbox_only)]
    while (cursor := pages[-1].cursor) is not None:
        pages.append(store.load(run_id, cursor=cursor, mailbox_only=mailbox_only))
    return pages


def last_of_lineage(ports: Ports, run_id: str) -> Run | None:
    """The run, or the last of those that have continued it; their numbers follow one another, so in ever longer leaps."""
    run, leap = ports.store.get(run_id), 1
    while run is not None and run.successor is not None:
        further = generation_of(run.id, run.lineage) + leap
        later = ports.store.get(generation_id(run.lineage or run.id, further)) if leap > 1 else None
        leap = 2 if later is None else leap * 2
        run = later or ports.store.get(run.successor)
    return run
