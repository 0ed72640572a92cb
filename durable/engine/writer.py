"""Writes the entries of one epoch: numbered without gaps, never twice, and none after the lease is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.errors import Fenced
from durable.model.entry import Entry

if TYPE_CHECKING:
    from durable.model.run import Run
    from durable.ops.operation import Operation
    from durable.ports import Ports


class EntryWriter:
    """The turn's pen. An item counts only if all of the epoch's items before it are written, so it writes one by one."""

    def __init__(self, ports: Ports, run: Run, time: float) -> None:
        self._ports = ports
        self._run = run
        self._n = 0
        self._time = time
        self.written: list[Entry] = []

    def write(self, operation: Operation, *, mark: str = "", **facts: Any) -> Entry:
        """Records a fact about an operation; raises `Fenced` if a newer epoch has written there."""
        self._time = max(self._time, round(self._ports.clock.now(), 6))
        entry = Entry(
            location=operation.location, mark=mark, kind=operation.kind, epoch=self._run.epoch, n=self._n + 1,
            at=self._time, fn=operation.fn, branches=operation.branches, **facts,
        )  # fmt: skip
        self._ports.store.put_entry(self._run.id, entry)
        self._n += 1
        self.written.append(entry)
        return entry

    def confirm(self) -> None:
        """Before an effect that must not be in vain: everything is written, and the run is still ours.

        Whoever owns the run later acquires it after this read, so it loads what we have written.
        """
        run = self._ports.store.get(self._run.id)
        if run is None or run.epoch != self._run.epoch:
            raise Fenced(self._run.id, self._run.epoch)
