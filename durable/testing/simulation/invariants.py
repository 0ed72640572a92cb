"""What must hold after every port call, whatever was killed, frozen, doubled or late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.history import counting_entries

if TYPE_CHECKING:
    from durable.adapters.memory import MemoryStore
    from durable.model.entry import Entry
    from durable.model.run import Run


class Violation(AssertionError):
    """An invariant does not hold; the message begins with its number."""


class Watch:
    """Looks at one run's stored state, all of it at one instant, and remembers what may not change any more."""

    def __init__(self, store: MemoryStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._settled: dict[str, Entry] = {}
        self._end: Run | None = None

    @property
    def run(self) -> Run:
        """The run record."""
        run = self._store.get(self._run_id)
        assert run is not None
        return run

    def history(self) -> dict[str, Entry]:
        """The entries that count, by key."""
        return {entry.key: entry for entry in counting_entries(self.run, self._store.history(self._run_id))}

    def unread(self) -> list[str]:
        """Names of stored messages that no entry has consumed."""
        consumed = {message.id for entry in self.history().values() for message in entry.messages}
        return [message.channel for message in self._store.mailbox(self._run_id) if message.id not in consumed]

    def before_put(self, entry: Entry) -> None:
        """I1, I4: what a released epoch has recorded stays; so does what its fence has let through."""
        old = self.history().get(entry.key)
        if old is None or old.epoch == entry.epoch:
            return
        run = self.run
        if old.epoch <= run.clean_epoch or old.epoch in run.fences:
            raise Violation(f"I4: {entry.key} of epoch {old.epoch} counts, and epoch {entry.epoch} overwrote it")

    def after_call(self, name: str) -> None:
        """Checks whatever a call may have broken."""
        if self._end is not None:
            self._check_end()
        if name in {"store.settle", "store.release", "store.terminate"}:
            self._check_settled()

    def _check_settled(self) -> None:
        run, history = self.run, self.history()
        for key, entry in self._settled.items():
            if history.get(key) != entry:
                raise Violation(f"I4: {key} was {entry.value} when a turn was settled and is {history.get(key)} now")
        if run.clean_epoch == run.epoch:
            self._settled = history
        consumed = [message.id for entry in history.values() for message in entry.messages]
        if len(consumed) != len(set(consumed)):
            raise Violation(f"I3: a message was consumed twice: {sorted(consumed)}")
        if run.ended:
            self._end = run
        elif run.status == "suspended" and run.lease_until is None and not run.waiting_for and run.due_at is None:
            raise Violation("I5: the run sleeps, and waits for nothing")

    def _check_end(self) -> None:
        if self.run != self._end:
            raise Violation(f"I6: the run had ended and changed: {self._end} is now {self.run}")
