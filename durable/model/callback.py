"""What an outside system answers: the body of the message that completes a callback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from durable.errors import ErrorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackAnswer:
    """A result, or a failure."""

    value: Any = None
    """Plain JSON data."""
    error: ErrorInfo | None = None
    retryable: bool = False
    """Of a failure: whether it may be asked again."""

    def to_text(self) -> str:
        """The JSON text of the message."""
        return _ADAPTER.dump_json(self, exclude_defaults=True).decode()


_ADAPTER: TypeAdapter[CallbackAnswer] = TypeAdapter(CallbackAnswer)


def answer_from(text: str) -> CallbackAnswer:
    """Reads what `to_text` wrote; raises pydantic's ValidationError (a ValueError) for anything else."""
    return _ADAPTER.validate_json(text)
