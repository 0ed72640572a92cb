"""Operations that something outside the run completes: a child, a remote step, an event, an outside system.

| state     | history at the location            | what happens                                                      |
|-----------|------------------------------------|-------------------------------------------------------------------|
| called    | nothing                            | the engine records that it is open, then dispatches it            |
| open      | `?k`, the last k counts            | the run waits for its message; a take-over dispatches it again    |
| done      | besides, an entry with the message | the value is returned, or the error raised                        |
| abandoned | besides, an entry that says so     | the code was cancelled: what was dispatched has been told to stop |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from durable.errors import ErrorInfo
from durable.ops.operation import WaitOperation

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.message import MessageKind, StoredMessage
    from durable.ops.effect import Stamp

ABANDONED: Final = ErrorInfo(type="Abandoned", module=__name__, message="the code that waited was cancelled")
"""The error of the entry that ends an operation which was open when its code was cancelled."""


class DispatchedOperation(WaitOperation):
    """An operation on something outside the run: recorded as open, then dispatched, then waited for."""

    __slots__ = ("channels",)
    may_be_late = True
    answered_by: ClassVar[MessageKind]
    """Messages of this kind complete it."""
    looks_first: ClassVar[bool] = False
    """Whether what dispatching it finds beats a deadline that has passed already, so that it is dispatched in any case."""

    def _listen(self) -> None:
        """Called once its location is known."""
        self.channels = (f"{self.answered_by}:{self.location}",)

    @property
    def open(self) -> Entry | None:
        """The entry that says that it is open; of several attempts the last."""
        marks = [fact for fact in self.facts if fact.mark.startswith("?")]
        return max(marks, key=lambda fact: fact.order) if marks else None

    @property
    def next_attempt(self) -> int:
        """The number of the attempt that is to be opened next; most operations have one only."""
        return 1

    def opening(self, stamp: Stamp) -> str:
        """The value of the entry that opens it: all that it takes to dispatch it, as JSON text."""
        raise NotImplementedError

    def answers(self, opened: Entry, message: StoredMessage) -> bool:
        """Whether the message is about what was opened so, and not about an earlier attempt."""
        raise NotImplementedError

    def error_of(self, messages: Sequence[StoredMessage]) -> ErrorInfo | None:
        """The error of an entry that consumes these messages."""
        raise NotImplementedError

    def asked_deadline(self) -> float | None:
        self.immediate = False
        return None

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        opened = self.open
        if opened is None:
            return ()
        return next(((message,) for message in messages if self.answers(opened, message)), ())
