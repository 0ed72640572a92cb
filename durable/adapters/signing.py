"""A secret that is at hand: that of tests and local stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from durable.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY_CHARS: Final = 32
"""Shorter keys can be guessed."""


class TextSigning:
    """Implements `Signing`."""

    def __init__(self, text: str) -> None:
        self._keys = keys_of(text, "the secret for tokens (DURABLE_TOKEN_SECRET)")

    def keys(self) -> Sequence[bytes]:
        return self._keys


def keys_of(text: str, where: str) -> tuple[bytes, ...]:
    """The keys of a secret, one a line: the first signs, the others are former ones that still verify."""
    keys = tuple(line.strip().encode() for line in text.splitlines() if line.strip())
    if not keys or min(map(len, keys)) < KEY_CHARS:
        raise InvalidInput(where, f"it must be one or several lines of at least {KEY_CHARS} characters each")
    return keys
