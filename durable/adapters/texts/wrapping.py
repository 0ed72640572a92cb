"""One text on its way out and in: first sealed, then, if it is large, exchanged for a reference to a blob."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json, to_json

from durable.adapters.texts.recent import RecentTexts
from durable.errors import LimitExceeded, NotAvailable, PayloadUnreadable, SealingFailed, StoreUnavailable
from durable.model.limits import BLOB_BYTES, COMPRESS_BYTES, PAYLOAD_BYTES
from durable.model.stored import BLOB, FORMS, PLAIN, SEALED, Opened, Reference, Sealed, Unreadable, owner_of

if TYPE_CHECKING:
    from durable.model.stored import PayloadCodec
    from durable.ports import Blobs, Ids

_BUCKET: Final = "Give the deployment a bucket (DURABLE_BUCKET), where larger values lie, or store it elsewhere and pass a reference."
_ELSEWHERE: Final = "Store it elsewhere (S3) in a step and pass a reference to it."
_AS_IT_IS, _COMPRESSED = b"-", b"z"
"""How the bytes inside a seal begin: what is sealed cannot be compressed afterwards."""


class Wrapping:
    """Knows where large texts lie and how they are sealed; safe to share between threads."""

    def __init__(self, blobs: Blobs, new_id: Ids, codec: PayloadCodec | None) -> None:
        """`blobs` holds bytes as they are; without a codec nothing is sealed."""
        self._blobs = blobs
        self._new_id = new_id
        self._codec = codec
        self._recent = RecentTexts()

    @property
    def seals(self) -> bool:
        """Whether small texts change too."""
        return self._codec is not None

    # Out

    def out(self, text: str, owner: str, what: str) -> str:
        """The form in which a text is stored for its owner: the same form again, where it has one already.

        Raises:
            LimitExceeded: It is larger than what can be stored; `what` names it.
            SealingFailed: The codec refused.
        """
        if self._codec is None and len(text) * 4 <= PAYLOAD_BYTES and not text.startswith(FORMS):
            return text
        stored = text.stored if isinstance(text, Opened) else text
        if stored.startswith(FORMS):
            if owner_of(stored) == owner:
                return stored
            text = self.needed(stored)  # it goes on to another run, and may outlive the one that it came from
        return self._limited(self._sealed(text, owner, what), text, owner, what)

    def apart(self, stored: str, text: str, owner: str, what: str) -> str:
        """A reference in place of the form of a text that does not fit beside others."""
        return stored if stored.startswith(BLOB) else self._put(stored, text, owner, what)

    def any_out(self, value: Any, owner: str, *, readable: bool = False) -> Any:
        """A member of an error: any text or JSON data, as it is or as a text in one of the forms."""
        if self._codec is not None and not readable:
            return self._sealed(to_json(value, inf_nan_mode="strings").decode(), owner, "an error")
        if isinstance(value, str) and value.startswith((*FORMS, PLAIN)):
            return PLAIN + to_json(value).decode()
        return value

    def bytes_out(self, key: str, data: bytes) -> bytes:
        """A blob of `ctx.offload`, whose key begins with its owner."""
        if self._codec is None:
            return data
        return SEALED.encode() + self._seal(data, key.rpartition("/")[0], "a blob")

    def _sealed(self, text: str, owner: str, what: str) -> str:
        if self._codec is None:
            return text
        data = text.encode()
        if len(data) > BLOB_BYTES:
            raise LimitExceeded(what, len(data), BLOB_BYTES, instead=_ELSEWHERE)
        data = _AS_IT_IS + data if len(data) <= COMPRESS_BYTES else _COMPRESSED + zlib.compress(data)
        return Sealed(self._seal(data, owner, what), owner).to_text()

    def _seal(self, data: bytes, owner: str, what: str) -> bytes:
        assert self._codec is not None
        try:
            return self._codec.seal(data, {"owner": owner})
        except StoreUnavailable:
            raise
        except Exception as problem:
            raise SealingFailed(what, f"{type(problem).__name__}: {problem}") from problem

    def _limited(self, stored: str, text: str, owner: str, what: str) -> str:
        if len(stored) * 4 <= PAYLOAD_BYTES:
            return stored
        size = len(stored.encode())
        return stored if size <= PAYLOAD_BYTES else self._put(stored, text, owner, what)

    def _put(self, stored: str, text: str, owner: str, what: str) -> str:
        """The bytes come first: a reference never stands for nothing."""
        data = stored.encode()
        size = len(text.encode())
        if size > BLOB_BYTES:
            raise LimitExceeded(what, size, BLOB_BYTES, instead=_ELSEWHERE)
        reference = Reference(f"{owner}/{self._new_id()}", size)
        try:
            self._blobs.put(reference.key, zlib.compress(data))
        except NotAvailable:
            raise LimitExceeded(what, len(data), PAYLOAD_BYTES, instead=_BUCKET) from None
        self._recent.keep(reference.key, text)
        return reference.to_text()

    # In

    def read(self, stored: str) -> str:
        """The text, or `Unreadable` with the reason; raises StoreUnavailable where a service does not answer."""
        if not stored.startswith(FORMS):
            return stored
        try:
            return Opened.of(self._read(stored), stored)
        except PayloadUnreadable as problem:
            return Unreadable.because(stored, problem.reason)

    def needed(self, stored: str) -> str:
        """The text; raises PayloadUnreadable."""
        text = self.read(stored)
        if isinstance(text, Unreadable):
            raise PayloadUnreadable(text.reason)
        return text

    def any_in(self, value: Any) -> Any:
        """A member of an error; `Unreadable` where it cannot be read."""
        if not isinstance(value, str):
            return value
        if value.startswith(PLAIN):
            return from_json(value.removeprefix(PLAIN))
        text = self.read(value)
        return from_json(text) if isinstance(text, Opened) else text

    def bytes_in(self, key: str, data: bytes | None) -> bytes | None:
        """A blob of `ctx.offload`; raises PayloadUnreadable."""
        prefix = SEALED.encode()
        if data is None or not data.startswith(prefix):
            return data
        return self._open(data.removeprefix(prefix), key.rpartition("/")[0])

    def _read(self, stored: str) -> str:
        if stored.startswith(BLOB):
            return self._fetched(stored)
        try:
            sealed = Sealed.from_text(stored)
        except ValueError:
            raise PayloadUnreadable("what is stored in its place is damaged") from None
        data = self._open(sealed.data, sealed.owner)
        try:
            return (zlib.decompress(data[1:]) if data.startswith(_COMPRESSED) else data[1:]).decode()
        except (ValueError, zlib.error):
            raise PayloadUnreadable("what the app's codec gave back is not what it was given") from None

    def _fetched(self, stored: str) -> str:
        try:
            reference = Reference.from_text(stored)
        except ValueError:
            raise PayloadUnreadable("what is stored in its place is damaged") from None
        if (text := self._recent.get(reference.key)) is not None:
            return text
        data = self._blobs.get(reference.key)
        if data is None:
            raise PayloadUnreadable(
                f'its blob "{reference.key}" is gone, or the bucket is another one (DURABLE_BUCKET)'
            )
        try:
            text = zlib.decompress(data).decode()
        except (ValueError, zlib.error):
            raise PayloadUnreadable(f'its blob "{reference.key}" is damaged') from None
        text = self._read(text) if text.startswith(SEALED) else text
        self._recent.keep(reference.key, text)
        return text

    def _open(self, data: bytes, owner: str) -> bytes:
        if self._codec is None:
            raise PayloadUnreadable(f'it is sealed (for "{owner}"), and the app has no codec: App(..., codec=...)')
        try:
            return self._codec.open(data, {"owner": owner})
        except StoreUnavailable:
            raise
        except Exception as problem:
            reason = f'the app\'s codec does not open what it sealed for "{owner}": {type(problem).__name__}: {problem}'
            raise PayloadUnreadable(reason) from problem
