"""Operations of one turn that something outside completes: opened, dispatched, and closed when their code is cancelled.

| a crash ...                          | and then                                                     |
|--------------------------------------|--------------------------------------------------------------|
| before the open entry is written     | the next turn comes to the operation as to a new one         |
| between the entry and the effect     | the take-over performs it, under the same ids                |
| after the effect                     | the take-over performs it again: whoever gets it twice knows |
| between cancelling and closing       | the next turn finds it open and cancelled, and closes it     |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from durable.engine import effects
from durable.engine.calls import Calls
from durable.ops.call import CallOperation
from durable.ops.dispatched import ABANDONED, DispatchedOperation
from durable.ops.effect import Stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from durable.engine.writer import EntryWriter
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ops.effect import EffectOperation
    from durable.ports import Ports

BATCH: Final = 100
"""So many operations are dispatched together, at the price of one look at the run; then the time is looked at."""


class Dispatcher:
    """Opens and closes the dispatched operations of one turn."""

    def __init__(self, ports: Ports, run: Run, writer: EntryWriter, deliver: Callable[[Entry], None]) -> None:
        self._ports = ports
        self._run = run
        self._writer = writer
        self._deliver = deliver
        self._new: list[DispatchedOperation] = []
        self._open: dict[str, DispatchedOperation] = {}
        self._calls = Calls(ports, run, writer)
        self._stamp = Stamp(run.epoch, max((cut.until for cut in run.cuts), default=None))

    def __bool__(self) -> bool:
        return any(not operation.dead for operation in self._new)

    def resume(self, parked: Iterable[object]) -> None:
        """Takes in what replay has left open, and what it has cancelled without anybody having been told."""
        for operation in parked:
            if isinstance(operation, DispatchedOperation) and operation.open is not None:
                self._open[operation.key] = operation
                if isinstance(operation, CallOperation) and not operation.dead:
                    self._calls.watch(operation)

    def admit(self, operation: DispatchedOperation) -> None:
        """Takes in an operation that the workflow has come to."""
        self._open[operation.key] = operation
        if isinstance(operation, CallOperation) and operation.attempt:
            self._calls.watch(operation)
        elif operation.open is None:
            self._new.append(operation)

    def dispatch(self) -> list[StoredMessage]:
        """Opens what is new, some at a time, then performs it; what has its answer already comes back as messages."""
        now, self._new = self._new[:BATCH], self._new[BATCH:]
        wanted = [operation for operation in now if not operation.dead]
        opened = [self._opened(operation) for operation in wanted]
        if not opened:
            return []
        self._writer.confirm()
        answers = [effects.perform(self._ports, self._run, entry) for entry in opened]
        for operation in wanted:
            if isinstance(operation, CallOperation):
                self._calls.watch(operation)
        return [self.put(answer) for answer in answers if answer is not None]

    def put(self, message: StoredMessage) -> StoredMessage:
        """Keeps a message that the run sends to itself, as if somebody else had."""
        self._ports.store.put_message(self._run.id, message)
        return message

    def perform(self, operation: EffectOperation) -> tuple[Entry, StoredMessage | None]:
        """Records an effect that nobody waits for, then performs it."""
        entry = self._writer.write(operation, value=operation.record_text(self._stamp))
        self._writer.confirm()
        answer = effects.perform(self._ports, self._run, entry)
        return entry, None if answer is None else self.put(answer)

    def done(self, operation: DispatchedOperation) -> None:
        """It has its result, which is recorded."""
        del self._open[operation.key]
        opened = operation.open
        if opened is None:
            return
        if opened.kind in effects.TIDIED:
            self._writer.confirm()
        effects.completed(self._ports, self._run, opened)

    def close_cancelled(self) -> None:
        """Tells whatever the code does not wait for any more to end."""
        for operation in [operation for operation in self._open.values() if operation.dead]:
            del self._open[operation.key]
            opened = operation.open
            if opened is None:
                continue
            self._deliver(self._writer.write(operation, error=ABANDONED))
            self._writer.confirm()
            effects.close(self._ports, self._run, opened, self._run.cancel_requested or "graceful")

    def _opened(self, operation: DispatchedOperation) -> Entry:
        mark = f"?{operation.next_attempt}"
        entry = self._writer.write(operation, mark=mark, value=operation.opening(self._stamp))
        self._deliver(entry)
        return entry

    # Calls of remote steps: what is to be done about them although no message has come

    @property
    def next_due(self) -> float | None:
        """When a call is to be dispatched again or looked at, seconds since 1970."""
        return self._calls.next_due

    def answer(self, call: CallOperation, message: StoredMessage) -> None:
        """Records what became of the attempt under way: the result of the call, or a failure after which it goes on."""
        self._recorded(call, self._calls.answered(call, message))

    def give_up_overdue(self) -> bool:
        """Looks at the calls that it is time for, until the end of an attempt was recorded.

        Those whose next attempt is due are new again.
        """
        while (call := self._calls.next()) is not None:
            opened = call.open
            if opened is None:
                self._new.append(call)
            elif (entry := self._calls.overdue(call, opened)) is not None:
                self._recorded(call, entry)
                return True
        return False

    def _recorded(self, call: CallOperation, entry: Entry) -> None:
        if not entry.mark:
            self.done(call)
        self._deliver(entry)
        if entry.mark:
            self._calls.watch(call)
