"""Writes the entries of one epoch: numbered without gaps, never twice, and none after the lease is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from durable.engine.streaming import Streams
from durable.errors import Fenced
from durable.model.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.engine.stopping import CancellationRecord
    from durable.engine.undoing import Undo
    from durable.model.answers import Refused
    from durable.model.run import Run
    from durable.model.transaction import TransactItem
    from durable.ops.operation import Operation
    from durable.ports import Ports

    Recorded: TypeAlias = Operation | Undo | CancellationRecord
    """What entries are written about."""


HELD_CHARS: Final = 50_000
"""What is held of ephemeral results at most: the item that carries them must keep under 400 KB (DynamoDB quotas)."""


class EntryWriter:
    """The turn's pen. An item counts only if all of the epoch's items before it are written, so it writes one by one."""

    def __init__(self, ports: Ports, run: Run, time: float) -> None:
        self._ports = ports
        self._run = run
        self._n = 0
        self._time = time
        self._held: list[Entry] = []
        self.written: list[Entry] = []
        self.streams = Streams(ports, run.id, run.epoch)
        self.before: Callable[[], None] = _nothing
        """Stores what the workflow has announced: called before every item, and by `flush`."""
        self.after: Callable[[Entry], None] = _ignored
        """Deletes what an item that has just been written makes obsolete."""
        self.history: Callable[[], Sequence[Entry]] = lambda: self.written
        """The history with what this turn has written."""

        self.pruned: Callable[[], bool] = lambda: run.pruned
        """Whether entries that others have to be told of may be gone from the history."""

    def write(self, operation: Recorded, *, mark: str | None = None, **facts: Any) -> Entry:
        """Records a fact about an operation; raises `Fenced` if a newer epoch has written there."""
        mark = operation.mark if mark is None else mark
        if not self._held:
            return self._put(self._entry(operation, mark, self._n + 1, facts))
        scope = operation.location.rpartition("/")[0]
        if any(held.scope != scope for held in self._held):
            self.flush()
        carried = tuple(replace(held, n=self._n + i) for i, held in enumerate(self._held, 1))
        self._held = []
        return self._put(self._entry(operation, mark, self._n + len(carried) + 1, facts | {"carried": carried}))

    def hold(self, operation: Recorded, **facts: Any) -> Entry:
        """The result of an ephemeral step: written inside the next item of its scope, or by `flush`, whichever is first.

        Until then a crash may repeat the step with another value.
        """
        size = sum(len(held.value or "") for held in self._held) + len(facts.get("value") or "")
        if size > HELD_CHARS:
            return self.write(operation, **facts)
        entry = self._entry(operation, operation.mark, self._n + len(self._held) + 1, facts)
        self._held.append(entry)
        return entry

    def flush(self) -> None:
        """Writes what is held as items of its own."""
        self.before()
        held, self._held = self._held, []
        for entry in held:
            self._put(replace(entry, n=self._n + 1))

    def confirm(self) -> None:
        """Before an effect that must not be in vain: everything is written, and the run is still ours.

        Whoever owns the run later acquires it after this read, so it loads what we have written.
        """
        self.flush()
        run = self._ports.store.get(self._run.id)
        if run is None or run.epoch != self._run.epoch:
            raise Fenced(self._run.id, self._run.epoch)

    def write_with(
        self, operation: Recorded, items: Sequence[TransactItem], **facts: Any
    ) -> tuple[Entry, Refused | None]:
        """Records the result together with items of the author's own tables, or neither; then the entry is not written.

        The transaction checks that the run is still ours, so nothing needs to be confirmed before.
        """
        self.flush()
        entry = self._entry(operation, operation.mark, self._n + 1, facts)
        refused = self._ports.store.transact(self._run.id, entry, items)
        if refused is None:
            self._n = entry.n
            self.written.append(entry)
        return entry, refused

    def keep(self, data: bytes) -> str:
        """Stores a blob of the run; its key, which no other blob ever had."""
        key = f"{self._run.id}/{self._ports.new_id()}"
        self._ports.blobs.put(key, data)
        return key

    @overload
    def keep_text(self, text: str, what: str) -> str: ...
    @overload
    def keep_text(self, text: None, what: str) -> None: ...
    def keep_text(self, text: str | None, what: str) -> str | None:
        """Does what it takes to store a text, before anything is recorded of it; raises LimitExceeded."""
        return None if text is None else self._ports.texts.kept(self._run.id, text, what=what)

    def fetch(self, key: str) -> bytes | None:
        """The bytes of a blob, of whatever run."""
        return self._ports.blobs.get(key)

    def _entry(self, operation: Recorded, mark: str, n: int, facts: dict[str, Any]) -> Entry:
        arrivals = [message.arrived_at for message in facts.get("messages", ())]  # by the queue's clock, not by ours
        self._time = max(self._time, round(self._ports.clock.now(), 6), *arrivals)
        return Entry(
            location=operation.location,
            mark=mark,
            kind=operation.kind,
            epoch=self._run.epoch,
            n=n,
            at=self._time,
            fn=operation.fn,
            branches=operation.branches,
            **facts,
        )

    def _put(self, entry: Entry) -> Entry:
        self.before()
        self._ports.store.put_entry(self._run.id, entry)
        self._n = entry.n
        self.written += [*entry.carried, entry]
        self.after(entry)
        return entry


def _nothing() -> None:
    pass


def _ignored(entry: Entry) -> None:
    del entry
