"""Blobs in memory."""

from __future__ import annotations

from threading import Lock


class MemoryBlobs:
    """Implements `Blobs`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blobs: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        with self._lock:
            self._blobs[key] = data

    def get(self, key: str) -> bytes | None:
        with self._lock:
            return self._blobs.get(key)

    def delete(self, prefix: str) -> None:
        with self._lock:
            for key in [key for key in self._blobs if key.startswith(prefix)]:
                del self._blobs[key]

    @property
    def keys(self) -> list[str]:
        """The keys of everything that is stored, in order."""
        with self._lock:
            return sorted(self._blobs)
