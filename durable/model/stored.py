"""The forms that a text has where it is stored: plain, sealed by the app's codec, or a reference to a blob.

A plain text is JSON, which begins with neither of the words below, so the forms cannot be confused.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, Self

from durable.errors import PayloadUnreadable

BLOB: Final = "blob:"
"""`blob:<size of the text in bytes>:<key>`."""
SEALED: Final = "sealed:"
"""`sealed:<base64>:<owner>`."""
PLAIN: Final = "plain:"
"""`plain:<JSON>`: a member of an error, which may be any text, and would be taken for one of the other forms."""
FORMS: Final = (BLOB, SEALED)

OF_EVENTS: Final = "~event:"
"""Begins the owner of what belongs to an event; no run id begins so."""


class PayloadCodec(Protocol):
    """Seals what a run stores and sends, so that the table, the queues and the bucket hold no readable payload.

    Both methods are called from several threads. `context` says whom the bytes belong to (`owner`: a run id, or
    `~event:<name>`): bind it to the result, so that sealed bytes of one run do not open as another's. Raise
    `StoreUnavailable` where a service does not answer: the turn is repeated. Anything else that is raised blocks the run.
    """

    def seal(self, data: bytes, context: Mapping[str, str]) -> bytes:
        """The bytes that are stored in place of these."""
        ...

    def open(self, data: bytes, context: Mapping[str, str]) -> bytes:
        """What was sealed, under the same context."""
        ...


class Opened(str):
    """A text that was stored in another form; storing it again for the same owner stores that form."""

    __slots__ = ("stored",)
    stored: str

    @classmethod
    def of(cls, text: str, stored: str) -> Self:
        """The text, with the form that it is stored in."""
        opened = cls(text)
        opened.stored = stored
        return opened


class Unreadable(str):
    """A stored text that could not be read, as it is stored; whoever needs its value says why, with `reason`."""

    __slots__ = ("reason",)
    reason: str

    @classmethod
    def because(cls, stored: str, reason: str) -> Self:
        """The stored form, and why it cannot be read."""
        unreadable = cls(stored)
        unreadable.reason = reason
        return unreadable


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a text lies that is too large for the store."""

    key: str
    """`<owner>/<ulid>`, never used again."""
    size: int

    @property
    def owner(self) -> str:
        """Whose blob it is; it goes when its owner is deleted."""
        return self.key.rpartition("/")[0]

    def to_text(self) -> str:
        """What is stored."""
        return f"{BLOB}{self.size}:{self.key}"

    @classmethod
    def from_text(cls, text: str) -> Reference:
        """Reads what `to_text` wrote; raises ValueError for anything else."""
        _, size, key = text.split(":", 2)
        return cls(key, int(size))


@dataclass(frozen=True, slots=True)
class Sealed:
    """What the codec made of a text."""

    data: bytes
    owner: str

    def to_text(self) -> str:
        """What is stored."""
        return f"{SEALED}{b64encode(self.data).decode()}:{self.owner}"

    @classmethod
    def from_text(cls, text: str) -> Sealed:
        """Reads what `to_text` wrote; raises ValueError for anything else."""
        _, data, owner = text.split(":", 2)
        return cls(b64decode(data, validate=True), owner)


def check_readable(texts: Iterable[str]) -> None:
    """Raises PayloadUnreadable for the first text that could not be read."""
    for text in texts:
        if isinstance(text, Unreadable):
            raise PayloadUnreadable(text.reason)


def owner_of(stored: str) -> str:
    """Whom a text that is not plain belongs to."""
    return Reference.from_text(stored).owner if stored.startswith(BLOB) else stored.split(":", 2)[2]
