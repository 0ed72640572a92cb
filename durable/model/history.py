"""Which items of a run's history count."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from durable.model.entry import Entry
    from durable.model.run import Run


def unpacked(items: Iterable[Entry]) -> Iterator[Entry]:
    """Every entry of the items, those that an item carries for ephemeral steps included."""
    for item in items:
        yield from item.carried
        yield item


def counting_entries(run: Run, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Leaves out what a fenced epoch wrote above its fence, and what an earlier run of the same id left behind."""
    for entry in entries:
        if entry.epoch >= run.born and entry.n <= run.fences.get(entry.epoch, entry.n):
            yield entry
