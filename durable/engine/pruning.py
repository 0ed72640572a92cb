"""Deletes what a loop's progress has made obsolete, so that a loop's history keeps its size whatever the iterations.

| what goes | when | why it is safe |
|---|---|---|
| items of earlier turns | at the start of a turn that loaded the progress | whoever loads the run from now on loads that progress too |
| items of this turn | after progress, under a floor | the floor says that this epoch's items up to there count, gaps or not |

Before an item goes, what must outlive it is kept elsewhere: the ids of messages that it consumed become tombstones,
and the compensation of its step, or the child that is to end with the run, becomes an item of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.history import is_start
from durable.model.sealing import seal
from durable.ops.child import child_start_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.engine.writer import EntryWriter
    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import Ports


class Pruner:
    """Prunes the history of one run within one turn."""

    def __init__(self, ports: Ports, run: Run, writer: EntryWriter, *, worthwhile: int) -> None:
        self._ports = ports
        self._run = run
        self._writer = writer
        self._worthwhile = worthwhile
        self._loaded: list[Entry] = []
        self.pruned = run.pruned
        """Whether messages may have been consumed, or at-most-once steps done, by entries that are gone."""

    def begin(self, loaded: Sequence[Entry]) -> Sequence[Entry]:
        """Deletes what the loaded history has made obsolete; the entries that are left."""
        _, _, left = seal(list(loaded))
        self._loaded = left
        if len(left) < len(loaded):
            self._delete(_missing(loaded, left))
        return left

    def after(self, entry: Entry) -> None:
        """Called with every entry that is written: a loop's progress or end may make others obsolete."""
        if entry.kind != "loop":
            return
        written = self._writer.written
        _, _, left = seal([*self._loaded, *written])
        obsolete = _missing([*self._loaded, *written], left)
        if len(obsolete) < self._worthwhile:
            return
        self._ports.store.record_floor(self._run.id, epoch=self._run.epoch, n=entry.n)
        self._delete(obsolete)
        gone = {id(item) for item in obsolete}
        self._loaded = [item for item in self._loaded if id(item) not in gone]
        self._writer.written = [item for item in written if id(item) not in gone]

    def history(self) -> Sequence[Entry]:
        """The history as it stands: what was loaded and what this turn has written, less what is gone."""
        return [*self._loaded, *self._writer.written]

    def _unheard(self, children: Sequence[Entry]) -> Sequence[Entry]:
        """Children that are to end with the run, and whose end it has not heard of."""
        heard = {message.name for entry in [*self._loaded, *self._writer.written] for message in entry.messages}
        own = [entry for entry in children if child_start_from(entry.value).close == "cancel"]
        return [entry for entry in own if entry.location not in heard]

    def _delete(self, obsolete: Sequence[Entry]) -> None:
        store, run = self._ports.store, self._run
        consumed = [message.id for entry in obsolete for message in entry.messages]
        kept = [entry for entry in obsolete if entry.compensation is not None or entry.kind == "checkpoint"]
        children = [entry for entry in obsolete if entry.kind == "start" and entry.error is None]
        if not self.pruned and (consumed or children or any(is_start(entry) for entry in obsolete)):
            store.mark_pruned(run.id, epoch=run.epoch)
            self.pruned = True
        if consumed:
            store.bury(run.lineage or run.id, consumed)
            # What earlier turns had consumed was deleted when this one began.
            if fresh := [m.id for entry in obsolete if entry.epoch == run.epoch for m in entry.messages]:
                store.delete_messages(run.id, fresh)
        if kept or children:
            store.keep_compensations(run.id, [*kept, *self._unheard(children)])
        store.delete_entries(run.id, [entry.key for entry in obsolete], epoch=run.epoch)


def _missing(entries: Sequence[Entry], left: Sequence[Entry]) -> list[Entry]:
    """What is not left. Progress of a loop may carry the result of an ephemeral step beside the loop: it stays with it."""
    kept = {id(entry) for entry in left}
    missing = [entry for entry in entries if id(entry) not in kept]
    return [entry for entry in missing if not any(id(carried) in kept for carried in entry.carried)]
