"""How long a history may become: a warning well before, and a run that is blocked instead of one that costs for ever."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from durable.errors import HistoryFull
from durable.model.limits import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.definitions import Workflow
    from durable.engine.writer import EntryWriter
    from durable.model.entry import Entry
    from durable.model.run import Run

log = logging.getLogger("durable")

WARNS_AT = 10
"""A history is long from this part of its ceiling on: a tenth."""


class Ceiling:
    """Watches the history of one run grow within one turn."""

    def __init__(self, run: Run, workflow: Workflow[Any, Any], loaded: Sequence[Entry], writer: EntryWriter) -> None:
        self._run = run
        self._limit = workflow.max_entries or ENTRIES
        self._loaded = len(loaded)
        self._writer = writer
        self._warns = self._loaded < self._limit // WARNS_AT
        self._look_at = min(self._limit, self._limit // WARNS_AT if self._warns else self._limit)

    def check(self) -> None:
        """Raises HistoryFull; counts what is left of the history only when there may be too much of it."""
        at_most = self._loaded + len(self._writer.written)
        if at_most < self._look_at:
            return
        entries = len(self._writer.history())
        if entries >= self._limit:
            raise HistoryFull(entries, self._limit)
        warns_at = self._limit // WARNS_AT
        if self._warns and entries >= warns_at:
            self._warns = False
            log.warning(
                "run %s (%s): its history has %d entries, and every turn reads all of them. A loop of thousands of rounds is "
                "ctx.loop(...), which deletes the past ones, or goes on with ctx.continue_as_new(...). At %d the run is blocked.",
                self._run.id, self._run.workflow, entries, self._limit,
            )  # fmt: skip
        self._look_at = at_most + (warns_at if self._warns else self._limit) - entries
