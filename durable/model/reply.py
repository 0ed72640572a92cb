"""The answer to an update, as its run records it and as its caller reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

KEPT_SECONDS: Final = 7 * 86_400.0
"""How long a caller can fetch the answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response's JSON value, or why the update was rejected."""

    id: str
    """That of the update."""
    value: Any = None
    rejected: str | None = None

    @classmethod
    def responding(cls, id: str, text: str) -> Reply:
        """A response, from its JSON text."""
        return cls(id, from_json(text))

    @classmethod
    def rejecting(cls, id: str, reason: str) -> Reply:
        """A rejection."""
        return cls(id, rejected=reason)

    @property
    def value_text(self) -> str:
        """The response as JSON text."""
        return to_json(self.value).decode()

    def to_text(self) -> str:
        """The JSON text that is stored."""
        return _ADAPTER.dump_json(self).decode()


_ADAPTER: TypeAdapter[Reply] = TypeAdapter(Reply)


def reply_from(text: str) -> Reply:
    """Reads what `to_text` wrote."""
    return _ADAPTER.validate_json(text)
