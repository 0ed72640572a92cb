"""Histories that a warm container keeps, so that its next turn of the same run reads the mailbox only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import Payload


@dataclass(frozen=True, slots=True)
class Kept:
    """A history as it was when its epoch was settled."""

    born: int
    epoch: int
    entries: Sequence[Entry]
    payloads: Mapping[Payload, str]


class HistoryCache:
    """Keyed by run, `born` and the clean epoch that the history ends with: any other turn in between makes it useless."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._size = 0

    def take(self, run: Run) -> Kept | None:
        """The history up to the run's last clean epoch, if this container settled it and nobody has acquired since."""
        with self._lock:
            kept = self._remove(run.id)
        if kept is not None and (kept.born, kept.epoch) == (run.born, run.clean_epoch) and run.epoch == kept.epoch + 1:
            return kept
        return None

    def keep(self, run: Run, entries: Sequence[Entry], payloads: Mapping[Payload, str]) -> None:
        """Keeps the history of a run whose epoch has just been settled cleanly."""
        if len(entries) > self._limit:
            return
        with self._lock:
            self._remove(run.id)
            self._kept[run.id] = Kept(run.born, run.epoch, entries, payloads)
            self._size += len(entries)
            while self._size > self._limit:
                _, dropped = self._kept.popitem(last=False)
                self._size -= len(dropped.entries)

    def _remove(self, run_id: str) -> Kept | None:
        kept = self._kept.pop(run_id, None)
        if kept is not None:
            self._size -= len(kept.entries)
        return kept
