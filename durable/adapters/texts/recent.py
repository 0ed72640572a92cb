"""Large texts that a process has stored or read lately, so that a mailbox that is read again needs no further requests."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

KEPT_CHARS: Final = 8 * 1024 * 1024
"""What is kept altogether: a small part of the memory of the smallest function that is worth having."""


class RecentTexts:
    """The latest texts by the keys of their blobs, which never stand for anything else; safe to share between threads."""

    def __init__(self, limit: int = KEPT_CHARS) -> None:
        self._limit = limit
        self._lock = Lock()
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> str | None:
        """The text, if it is kept."""
        with self._lock:
            text = self._texts.get(key)
            if text is not None:
                self._texts.move_to_end(key)
            return text

    def keep(self, key: str, text: str) -> None:
        """Keeps a text, and lets go of those that were not asked for the longest."""
        if len(text) > self._limit:
            return
        with self._lock:
            self._drop(key)
            self._texts[key] = text
            self._size += len(text)
            while self._size > self._limit:
                self._drop(next(iter(self._texts)))

    def _drop(self, key: str) -> None:
        text = self._texts.pop(key, None)
        self._size -= 0 if text is None else len(text)
