"""Fences: how much of what a lost turn wrote counts, decided once by whoever takes over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable.model.history import gap_free_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import Ports

LONGEST_INVOCATION: Final = 1_000.0
"""Seconds after which an invocation is surely over: Lambda's 900 (Lambda quotas), and a margin for clocks."""

FENCES_KEPT: Final = 8
"""The default of `EngineOptions.fences_kept`."""


def fence(ports: Ports, run: Run, entries: Sequence[Entry]) -> Run:
    """Records, for every epoch that was not released cleanly, how many of its items count.

    What a lost turn acted upon is a gap-free prefix of its items, because it hands a result to user code only when
    every item before it is written. The highest number seen is not enough: pages are read one after another, so a
    late write may be seen while an earlier one was missed.
    """
    fences = dict(run.fences)
    for epoch in range(run.clean_epoch + 1, run.epoch):
        if epoch not in fences:
            written = {entry.n for entry in entries if entry.epoch == epoch}
            fences[epoch] = gap_free_prefix(written, floor=run.floors.get(epoch, 0))
    if fences != run.fences:
        ports.store.record_fences(run.id, epoch=run.epoch, fences=fences)
    return replace(run, fences=fences)


def forget_old(ports: Ports, run: Run, entries: Sequence[Entry], *, kept: int = FENCES_KEPT) -> Run:
    """Drops fences whose owners can write no more, after deleting what those have left above them.

    A run that lives for years loses a turn now and then, and its record must not grow for it. An owner of an epoch
    before the last clean one was acquired before that one settled (`updated_at`), so a while later it is over.
    """
    if run.updated_at is None or ports.clock.now() - run.updated_at < LONGEST_INVOCATION:
        return run
    old = {epoch for epoch in run.fences if epoch < run.clean_epoch}
    if len(old) <= kept:
        return run
    above = [entry.key for entry in entries if entry.epoch in old and entry.n > run.fences[entry.epoch]]
    ports.store.delete_entries(run.id, above, epoch=run.epoch)
    fences = {epoch: n for epoch, n in run.fences.items() if epoch not in old}
    ports.store.record_fences(run.id, epoch=run.epoch, fences=fences)
    return replace(run, fences=fences)
