"""A message to another run, as the run that sends it records it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter

from durable.model.envelope import StartSpec
from durable.model.message import MessageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSend:
    """The value of a send's entry: all that it takes to send the message again."""

    to: str
    message_id: str
    name: str
    body: str
    """JSON text."""
    delay: float = 0.0
    kind: MessageKind = "signal"
    start: StartSpec | None = None
    """Creates the run that it is for, if there is none."""

    def to_text(self) -> str:
        """The JSON text that is recorded."""
        return _ADAPTER.dump_json(self, exclude_defaults=True).decode()


_ADAPTER: TypeAdapter[RecordedSend] = TypeAdapter(RecordedSend)


def recorded_send_from(text: str | None) -> RecordedSend:
    """Reads what `to_text` wrote."""
    return _ADAPTER.validate_json(text or "")
