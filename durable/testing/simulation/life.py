"""One run under observation: what is stored of it, all at one instant, and what may not change any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from durable.model.history import counting_entries, unpacked
from durable.model.ids import PREFIX_OF_ENTITIES
from durable.model.sealing import seal
from durable.records import pages_of
from durable.testing.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.adapters.memory import MemoryStore
    from durable.model.entry import Entry
    from durable.model.run import Run


class Life:
    """Checks one run after every call that may have changed it."""

    def __init__(self, store: MemoryStore, run: Run, stored: int | None) -> None:
        self.run_id = run.id
        self.lineage = self._lineage = run.lineage or run.id
        self._store = store
        self._stored = stored
        self._bound: dict[str, Entry] = {}
        self._live: dict[str, Entry] = {}
        self._mailbox: set[str] = set()
        self._before: Run | None = None
        self._end: Run | None = None
        self.consumers: dict[str, str] = {}
        """Keys of the entries that consumed messages, by message; those of entries that are gone too."""

    @property
    def run(self) -> Run:
        """The run record."""
        run = self._store.get(self.run_id)
        assert run is not None
        return run

    def history(self) -> dict[str, Entry]:
        """The entries that count, by key."""
        return {entry.key: entry for entry in counting_entries(self.run, unpacked(self._store.history(self.run_id)))}

    def kept(self) -> dict[str, Entry]:
        """What was kept of pruned entries for a rollback, as far as it counts, by key."""
        kept = [entry for page in pages_of(self._store, self.run_id) for entry in page.kept]
        return {entry.key: entry for entry in counting_entries(self.run, kept)}

    def check_end(self) -> None:
        """I6: a run that has ended does not change, but for the note of what it owes, and of who wants to know of its end."""
        run = self.run
        if self._end is None and run.ended:
            self._end = run
        if self._end is None or run is self._end:
            return
        if run.outbox is not None and self._end.outbox is None:
            raise Violation(f"I6: {run.id} had told everybody of its end, and is to tell them again")
        after = replace(self._end, outbox=run.outbox, due_at=run.due_at, watched=run.watched, wakes=run.wakes)
        if run != after:
            raise Violation(f"I6: the run had ended and has changed: {run}")
        self._end = run

    def check_bound(self) -> None:
        """I1, I4: what a released epoch has recorded stays as it is; so does what a fence or a floor has let through."""
        run, history = self.run, self.history()
        gone = {key: entry for key, entry in self._bound.items() if history.get(key) != entry}
        for key, entry in gone.items():
            if key in history:
                raise Violation(
                    f"I4: {key} counted with {entry.value} of epoch {entry.epoch} and is {history[key]} now"
                )
        if gone:
            self._check_pruned(gone, history)
        self._check_live(run, history)
        bound = {
            key: entry
            for key, entry in history.items()
            if _is_over(run, entry.epoch) or entry.n <= run.floors.get(entry.epoch, 0)
        }
        for key in bound.keys() - self._bound.keys():
            if self._before is not None and _is_over(self._before, bound[key].epoch):
                raise Violation(f"I1: {key} counts, and its epoch was over when it was written")
        self._bound, self._before = bound, run
        self._live = {key: entry for key, entry in history.items() if key not in bound}
        for key, entry in bound.items():
            for message in entry.messages:
                if self.consumers.setdefault(message.id, key) != key:
                    raise Violation(f"I3: {message.id} was consumed by {self.consumers[message.id]} and by {key}")
        mailbox = {message.id for message in self._store.mailbox(self.run_id)}
        lost = self._mailbox - mailbox - self.consumers.keys()
        if run.ended and run.workflow.startswith(PREFIX_OF_ENTITIES):
            lost = set[str]()  # whoever has sent them was told that they are not performed
        if lost - self._store.buried(self._lineage, list(lost)):
            raise Violation(f"I3: {sorted(lost)} are deleted, and it is not decided yet that they were consumed")
        self._mailbox = mailbox
        if self._stored is not None and (stored := len(self._store.history(self.run_id))) > self._stored:
            raise Violation(f"I7: {stored} items of history are stored, and {self._stored} are enough")

    def unread(self) -> list[str]:
        """Channels of stored messages that the run can still consume."""
        messages = self._store.mailbox(self.run_id)
        consumed = {message.id for entry in self.history().values() for message in entry.messages}
        consumed |= self._store.buried(self._lineage, [message.id for message in messages])
        return [message.channel for message in messages if message.id not in consumed]

    def _is_in_line(self, run: Run) -> bool:
        """Whether the grant of a slot will wake it, or has."""
        if run.lane is None:
            return False
        state = self._store.read_lane(run.lane, tickets=0)
        held = state is not None and self._lineage in state.lane.holders
        return held or self._store.find_ticket(run.lane, self._lineage) is not None

    def _check_live(self, run: Run, history: Mapping[str, Entry]) -> None:
        """Of what is not decided yet nothing goes: a gap would cut off what follows, and a message would be lost."""
        for key, entry in self._live.items():
            if key not in history and not _is_over(run, entry.epoch) and entry.n > run.floors.get(entry.epoch, 0):
                raise Violation(f"I1: {key} is gone, and its epoch is not over: what follows would not count")
        carries = None if self._before is None else self._before.carries
        if carries is not None and run.carries is None:
            copied = {message.id for message in self._store.mailbox(self.run_id)}
            copied |= self._store.buried(self._lineage, carries.message_ids)
            if lost := set(carries.message_ids) - copied:
                raise Violation(f"I3: {sorted(lost)} are not copied, and nothing names them any more")

    def _check_pruned(self, gone: Mapping[str, Entry], history: Mapping[str, Entry]) -> None:
        """An entry may go that a loop's progress has made obsolete, after what must outlive it is kept elsewhere."""
        _, _, left = seal([*history.values(), *gone.values()])
        for entry in left:
            if entry.key in gone:
                raise Violation(f"I4: {entry.key} counted with {entry.value} of epoch {entry.epoch} and is gone")
        consumed = {message.id for entry in gone.values() for message in entry.messages}
        if consumed - self._store.buried(self._lineage, list(consumed)) or (consumed and not self.run.pruned):
            raise Violation(f"I3: nothing tells any more that {consumed} were consumed: {list(gone)} are gone")
        undoable = {key: entry for key, entry in gone.items() if entry.compensation is not None}
        kept = self.kept() if undoable else {}
        if lost := [key for key, entry in undoable.items() if kept.get(key) != entry]:
            raise Violation(f"rollback: {lost} is gone, and with it how to undo it")

    def check_settled(self) -> None:
        """I3, I5: what must hold whenever a turn is over."""
        run = self.run
        consumed = [message.id for entry in self.history().values() for message in entry.messages]
        if len(consumed) != len(set(consumed)):
            raise Violation(f"I3: a message was consumed twice: {sorted(consumed)}")
        if run.ended or run.lease_until is not None or run.due_at is not None or self._is_in_line(run):
            return
        if run.status == "blocked":
            return  # whether that is right is seen in the end
        if run.status != "suspended" or not run.waiting_for:
            raise Violation(f"I5: the run is {run.status}, not due, and waits for nothing: {run.reason}")


def _is_over(run: Run, epoch: int) -> bool:
    """Whether it is decided which items of an epoch count."""
    return epoch <= run.clean_epoch or epoch in run.fences
