"""What must hold after every port call, whatever was killed, frozen, doubled or late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from durable.model.history import counting_entries, unpacked
from durable.model.sealing import seal
from durable.testing.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.memory import MemoryStore
    from durable.model.entry import Entry
    from durable.model.run import Run

READS = frozenset({"store.get", "store.load", "store.get_payload", "store.due_runs", "store.announce", "store.buried"})


class Life:
    """One run of the lineage: what is stored of it, all at one instant, and what may not change any more."""

    def __init__(self, store: MemoryStore, run_id: str, lineage: str, stored: int | None) -> None:
        self.run_id = run_id
        self._store = store
        self._lineage = lineage
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
        page = self._store.load(self.run_id)
        kept = list(page.kept)
        while page.cursor is not None:
            page = self._store.load(self.run_id, cursor=page.cursor)
            kept += page.kept
        return {entry.key: entry for entry in counting_entries(self.run, kept)}

    def check_end(self) -> None:
        """I6: a run that has ended does not change."""
        if self._end is None and self.run.ended:
            self._end = self.run
        if self._end is not None and self.run != self._end:
            raise Violation(f"I6: the run had ended and has changed: {self.run}")

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
        if lost - self._store.buried(self._lineage, list(lost)):
            raise Violation(f"I3: {sorted(lost)} are deleted, and it is not decided yet that they were consumed")
        self._mailbox = mailbox
        if self._stored is not None and (stored := len(self._store.history(self.run_id))) > self._stored:
            raise Violation(f"I7: {stored} items of history are stored, and {self._stored} are enough")

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
        if run.ended or run.lease_until is not None or run.due_at is not None:
            return
        if run.status != "suspended" or not run.waiting_for:
            raise Violation(f"I5: the run is {run.status}, not due, and waits for nothing: {run.reason}")


def _is_over(run: Run, epoch: int) -> bool:
    """Whether it is decided which items of an epoch count."""
    return epoch <= run.clean_epoch or epoch in run.fences


class Watch:
    """Looks at a run and at those that continue it."""

    def __init__(self, store: MemoryStore, run_id: str, *, stored: int | None) -> None:
        self._store = store
        self._stored = stored
        self.lineage = [Life(store, run_id, run_id, stored)]

    @property
    def run(self) -> Run:
        """The record of the last run."""
        return self.lineage[-1].run

    @property
    def output(self) -> Any:
        """What the last run has returned."""
        text = self.run.output
        return from_json(self._store.get_payload(self.run.id, "output") or "" if text is None else text)

    def __str__(self) -> str:
        run = self.run
        return f"{run.status}, due at {run.due_at}, epoch {run.epoch - run.born}, waits for {run.waiting_for}: {run.reason}"

    def history(self) -> dict[str, Entry]:
        """The entries of the last run that count, by key."""
        return self.lineage[-1].history()

    def kept(self) -> dict[str, Entry]:
        """What was kept of its pruned entries, by key."""
        return self.lineage[-1].kept()

    def consumed(self, messages: Sequence[str]) -> set[str]:
        """Which of the messages some run of the lineage has consumed for good."""
        entries = [entry for life in self.lineage for entry in life.history().values()]
        named = {message.id for entry in entries for message in entry.messages}
        return (named | self._store.buried(self.lineage[0].run_id, messages)) & set(messages)

    def unread(self) -> list[str]:
        """Channels of stored messages that the last run can still consume."""
        messages = self._store.mailbox(self.run.id)
        consumed = self.consumed([message.id for message in messages])
        return [message.channel for message in messages if message.id not in consumed]

    def mailbox(self, run_id: str) -> set[str]:
        """Ids of the messages in a mailbox."""
        return {message.id for message in self._store.mailbox(run_id)}

    def after_call(self, name: str) -> None:
        """Checks whatever a call may have broken."""
        for life in self.lineage:
            life.check_end()
            if name.startswith("store.") and name not in READS:
                life.check_bound()
        if name in {"store.settle", "store.release", "store.continue_as_new"}:
            self.lineage[-1].check_settled()
            self._follow()

    def _follow(self) -> None:
        successor = self.run.successor
        if successor is None:
            return
        self.lineage.append(Life(self._store, successor, self.lineage[0].run_id, self._stored))
        consumers = [message for life in self.lineage for message in life.consumers]
        if len(consumers) != len(set(consumers)):
            raise Violation(f"I3: a message was consumed by two runs of a lineage: {sorted(consumers)}")
