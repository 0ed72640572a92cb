"""A wait for an event: the run is listed among those who wait for it, until one that matches comes or the time is up.

| state     | history at the location            | what happens                                                          |
|-----------|------------------------------------|-----------------------------------------------------------------------|
| new       | nothing                            | the engine records what it waits for, then lists the run              |
| waiting   | `?1`                               | an event that matches comes as a message; a kept one comes at once    |
| received  | besides, an entry with the message | returns the payload; the run is taken off the list                    |
| timed out | besides, an entry with neither, or an error | returns the default, or WaitTimeout; the run is taken off the list |
| abandoned | besides, an entry that says so     | the code was cancelled: the run is taken off the list                 |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from durable import codec, failures
from durable.errors import ErrorInfo, UndecodableHistory, WaitTimeout
from durable.model.subscription import Awaited, MatchKey, awaited_from
from durable.ops.dispatched import ABANDONED, DispatchedOperation
from durable.ops.operation import Host, until
from durable.options import MISSING

if TYPE_CHECKING:
    from durable.channels import Event
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.ops.effect import Stamp


class EventOperation(DispatchedOperation):
    """`await ctx.wait_for_event(SETTLED, match={"id": order.id})`."""

    __slots__ = ("_default", "_event", "_match", "_timeout")
    kind = "wait"
    answered_by = "event"
    looks_first = True

    def __init__(
        self,
        host: Host,
        event: Event[Any],
        match: tuple[MatchKey, ...],
        *,
        timeout: float | None = None,
        default: Any = MISSING,
    ) -> None:
        self._event = event
        self._match = match
        self._timeout = timeout
        self._default = default
        super().__init__(host, None, event.name, event.name)
        self._listen()

    def opening(self, stamp: Stamp) -> str:  # noqa: ARG002 - it is always the same
        return Awaited(event=self._event.name, match=self._match).to_text()

    def answers(self, opened: Entry, message: StoredMessage) -> bool:
        """One that came for what stood here before a retry may be meant for something else."""
        return awaited_from(opened.value).fits(codec.decode(message.body, codec.UNTYPED))

    def asked_deadline(self) -> float | None:
        self.immediate = self._timeout is not None and self._timeout <= 0
        return None if self._timeout is None else self.journal.loop.now + max(0.0, self._timeout)

    def on_messages(self, messages: Sequence[StoredMessage]) -> None:
        self._payload(messages[0])  # one that cannot be read must not be consumed

    def error_of(self, messages: Sequence[StoredMessage]) -> None:  # noqa: ARG002 - an event is no failure
        return None

    def on_deadline(self) -> tuple[None, ErrorInfo | None]:
        if self._default is not MISSING:
            return None, None
        return None, ErrorInfo(type=WaitTimeout.__qualname__, module=WaitTimeout.__module__, message="")

    def decode(self, entry: Entry) -> Any:
        if entry.messages:
            return self._payload(entry.messages[0])
        if entry.error == ABANDONED:
            raise failures.rebuild(ABANDONED)
        if entry.error is not None or self._default is MISSING:
            raise WaitTimeout(self.location)
        return self._default

    def describe(self) -> str:
        return f'event "{self._event.name}"{until(self.deadline)}'

    def _payload(self, message: StoredMessage) -> Any:
        try:
            return codec.decode(message.body, self._event.type)
        except ValueError as error:
            where = f'{self.location} (message "{message.id}")'
            raise UndecodableHistory(where, codec.type_name(self._event.type), codec.reason_of(error)) from None
