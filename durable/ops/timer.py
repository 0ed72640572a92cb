"""A timer of asyncio (`asyncio.sleep`, `timeout`, `wait_for`): an operation that is awaited from the start.

| state     | history at the location | what happens                                     |
|-----------|-------------------------|--------------------------------------------------|
| set       | nothing                 | fires at its moment; the settle names it         |
| fired     | an entry without value  | its callback runs when the entry comes in order  |
| cancelled | nothing                 | never fires and is not recorded                  |
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from durable.journal import current_scope
from durable.loop import Handle, running_loop
from durable.ops.operation import Host, WaitOperation, until

if TYPE_CHECKING:
    from durable.model.entry import Entry


class TimerOperation(WaitOperation):
    """What `loop.call_at` answers: it has the methods of asyncio.TimerHandle."""

    __slots__ = ("_args", "_callback", "_when")
    kind = "sleep"

    def __init__(
        self,
        host: Host,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context,
    ) -> None:
        self.journal = journal = host.journal
        self._when = when
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self.context = context
        self.future = self.iterator = self.fn = None
        if journal.loop.closing is not None or running_loop() is not journal.loop:
            self._callback = None  # set by clean-up code: it will never fire
            return
        self.scope = scope = context.get(current_scope, journal.root)
        self.location = scope.derived("timer")
        self._register(journal, scope, self.location)
        del scope.unawaited[self.location]
        if self.record is None:
            self.before_waiting()
            journal.park(self)

    def asked_deadline(self) -> float:
        self.immediate = self._when <= self.journal.loop.now
        return self._when

    @property
    def awaited(self) -> bool:
        return True

    @property
    def dead(self) -> bool:
        return self._callback is None

    def when(self) -> float:
        """The moment that was asked for, on the loop's clock."""
        return self._when

    def cancel(self) -> None:
        """Nothing will come of it."""
        if self._callback is not None:
            self._callback = None
            self.journal.loop.cancelled_something = True
            self.journal.parked.pop(self.location, None)

    def cancelled(self) -> bool:
        """Whether it was cancelled or has fired."""
        return self._callback is None

    def resolve(self, entry: Entry) -> bool:  # noqa: ARG002  a timer has no value
        if self._callback is None:
            return False
        self.journal.loop.ready.append(Handle(self._callback, self._args, self.context))
        self._callback = None
        return True

    def describe(self) -> str:
        return f"timer{until(self.deadline)}"
