"""Which items of a run's history count."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from durable.model.entry import Entry
    from durable.model.run import Run


def unpacked(items: Iterable[Entry]) -> Iterator[Entry]:
    """Every entry of the items, those that an item carries for ephemeral steps included."""
    for item in items:
        yield from item.carried
        yield item


def counting_entries(run: Run, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Leaves out what does not count.

    That is what a fenced epoch wrote above its fence, what a cut has taken back, and what an earlier run of the same id
    left behind.
    """
    for entry in entries:
        if entry.epoch < run.born or entry.n > run.fences.get(entry.epoch, entry.n):
            continue
        if run.cuts and not outlives_cuts(entry) and any(cut.covers(entry.order) for cut in run.cuts):
            continue
        yield entry


def outlives_cuts(entry: Entry) -> bool:
    """Whether it counts after a cut all the same.

    A step that was undone needs another idempotency key when it is done again. An at-most-once step that was started
    must not be started again.
    """
    return (entry.mark == "!" and entry.error is None) or is_start(entry)


def is_start(entry: Entry) -> bool:
    """Whether it is the start of an attempt at an at-most-once step."""
    return entry.mark.startswith("@") and entry.error is None


def gap_free_prefix(numbers: Collection[int], *, floor: int = 0) -> int:
    """How far the numbers of an epoch's items go without a gap.

    Counting starts at the epoch's floor: items up to it may be gone, pruned by the turn that wrote them.
    """
    k = floor
    while k + 1 in numbers:
        k += 1
    return k
