"""Histories that a warm container keeps, so that its next turn of the same run reads the mailbox only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.entry import Entry
    from durable.model.run import Run


class HistoryCache:
    """Keyed by run, `born` and the clean epoch that the history ends with: any other turn in between makes it useless."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[int, int, Sequence[Entry]]] = OrderedDict()
        self._size = 0

    def take(self, run: Run) -> Sequence[Entry] | None:
        """The history up to the run's last clean epoch, if this container settled it and nobody has acquired since."""
        with self._lock:
            born, epoch, entries = self._kept.pop(run.id, (0, 0, ()))
            self._size -= len(entries)
        if (born, epoch) == (run.born, run.clean_epoch) and run.epoch == epoch + 1:
            return entries
        return None

    def keep(self, run: Run, entries: Sequence[Entry]) -> None:
        """Keeps the history of a run whose epoch has just been settled cleanly."""
        if len(entries) > self._limit:
            return
        with self._lock:
            _, _, replaced = self._kept.pop(run.id, (0, 0, ()))
            self._kept[run.id] = (run.born, run.epoch, entries)
            self._size += len(entries) - len(replaced)
            while self._size > self._limit:
                _, (_, _, dropped) = self._kept.popitem(last=False)
                self._size -= len(dropped)
