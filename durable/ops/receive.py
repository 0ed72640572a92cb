"""A wait for signals: consumes the earliest messages of the run's mailbox, or ends at a deadline.

| state     | history at the location            | what happens                                          |
|-----------|------------------------------------|-------------------------------------------------------|
| new       | nothing                            | takes a message that is there, in order of arrival    |
| waiting   | nothing; the settle names the wait | a message wakes the run; a recorded deadline stands   |
| received  | an entry with the messages         | returns them                                          |
| timed out | an entry with neither, or an error | returns the default (`[]` for a batch), or WaitTimeout |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, assert_never

from durable import codec
from durable.channels import Message
from durable.errors import ErrorInfo, UndecodableHistory, WaitTimeout
from durable.model.limits import PAYLOAD_BYTES
from durable.ops.operation import Host, WaitOperation, until
from durable.options import MISSING

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage

Shape = Literal["message", "body", "batch"]
"""What the code gets: a Message, its body alone, or a list of Messages."""


class ReceiveOperation(WaitOperation):
    """`await ctx.mailbox.next(APPROVE)` and its relatives; without names it takes any signal."""

    __slots__ = ("_count", "_default", "_shape", "_timeout", "_types", "channels")
    kind = "wait"

    def __init__(
        self,
        host: Host,
        name: str | None,
        types: Mapping[str, Any],
        *,
        count: int | None = None,
        timeout: float | None = None,
        default: Any = MISSING,
        shape: Shape = "message",
    ) -> None:
        self._types = types
        self._count = (count or 100) if shape == "batch" else 1
        self._timeout = timeout
        self._default = default
        self._shape: Shape = shape
        self.channels = tuple(f"signal:{signal}" for signal in types) or ("*",)
        super().__init__(host, name, "|".join(types) or "message")

    def asked_deadline(self) -> float | None:
        self.immediate = self._timeout is not None and self._timeout <= 0
        return None if self._timeout is None else self.journal.loop.now + max(0.0, self._timeout)

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        wanted: list[StoredMessage] = []
        room = PAYLOAD_BYTES
        for message in messages:
            if message.kind != "signal" or (self._types and message.name not in self._types):
                continue
            room -= len(message.body.encode())
            if wanted and room < 0:
                break  # the entry that consumes them holds their bodies; the others are for the next batch
            wanted.append(message)
            if len(wanted) == self._count:
                break
        return tuple(wanted)

    def on_messages(self, messages: Sequence[StoredMessage]) -> None:
        for message in messages:
            self._message(message)  # a body that cannot be read must not be consumed

    def on_deadline(self) -> tuple[None, ErrorInfo | None]:
        if self._shape == "batch" or self._default is not MISSING:
            return None, None
        return None, ErrorInfo(type=WaitTimeout.__qualname__, module=WaitTimeout.__module__, message="")

    def decode(self, entry: Entry) -> Any:
        received = [self._message(message) for message in entry.messages]
        match self._shape:
            case "batch":
                return received
            case "message" | "body":
                if not received:
                    return self._on_timeout(entry)
                return received[0] if self._shape == "message" else received[0].body
            case _:
                assert_never(self._shape)

    def _on_timeout(self, entry: Entry) -> Any:
        if entry.error is not None or self._default is MISSING:
            raise WaitTimeout(self.location)
        return self._default

    def _message(self, message: StoredMessage) -> Message[Any]:
        sent_at = datetime.fromtimestamp(message.arrived_at, UTC)
        declared = self._types.get(message.name, codec.UNTYPED)
        try:
            body = codec.decode(message.body, declared)
        except ValueError as error:
            where = f'{self.location} (message "{message.id}")'
            raise UndecodableHistory(where, codec.type_name(declared), codec.reason_of(error)) from None
        return Message(id=message.id, name=message.name, body=body, sent_at=sent_at)

    def describe(self) -> str:
        names = " or ".join(f'"{name}"' for name in self._types)
        return f"signal {names}{until(self.deadline)}" if names else f"any signal{until(self.deadline)}"
