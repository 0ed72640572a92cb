"""Envelope encryption: AES-GCM under data keys that a KMS key wraps. Each text carries its own wrapped data key."""

import json
import os
import struct
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from durable import StoreUnavailable

SEALS_A_KEY = 1_000_000
"""Random nonces of 96 bits are safe for 2**32 seals under one key (NIST SP 800-38D); a new key long before that."""

NONCE = 12
TRANSIENT = {"ThrottlingException", "KMSInternalException", "DependencyTimeoutException", "LimitExceededException"}


class KmsCodec:
    """Implements `durable.PayloadCodec`. One request to KMS a container and key that it meets, none a text."""

    def __init__(self, make_client: Callable[[], Any], key_id: str, *, app: str) -> None:
        self._make_client = make_client
        self._key_id = key_id
        self._kms_context = {"app": app}  # shows in CloudTrail, and a key policy can ask for it
        self._lock = Lock()
        self._current: tuple[bytes, AESGCM] | None = None
        self._left = 0
        self._unwrapped = lru_cache(1000)(self._unwrap)

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    def seal(self, data: bytes, context: Mapping[str, str]) -> bytes:
        wrapped, cipher = self._key()
        nonce = os.urandom(NONCE)
        return struct.pack(">H", len(wrapped)) + wrapped + nonce + cipher.encrypt(nonce, data, _bound(context))

    def open(self, data: bytes, context: Mapping[str, str]) -> bytes:
        (length,) = struct.unpack_from(">H", data)
        wrapped, rest = data[2 : 2 + length], data[2 + length :]
        return self._unwrapped(wrapped).decrypt(rest[:NONCE], rest[NONCE:], _bound(context))

    def _key(self) -> tuple[bytes, AESGCM]:
        with self._lock:
            if self._current is None or self._left <= 0:
                made = self._ask(
                    "generate_data_key", KeyId=self._key_id, KeySpec="AES_256", EncryptionContext=self._kms_context
                )
                self._current, self._left = (made["CiphertextBlob"], AESGCM(made["Plaintext"])), SEALS_A_KEY
            self._left -= 1
            return self._current

    def _unwrap(self, wrapped: bytes) -> AESGCM:
        opened = self._ask("decrypt", KeyId=self._key_id, CiphertextBlob=wrapped, EncryptionContext=self._kms_context)
        return AESGCM(opened["Plaintext"])

    def _ask(self, operation: str, **parameters: Any) -> Any:
        """What KMS does not answer in time is tried again with the whole turn; what it refuses blocks the run."""
        try:
            return getattr(self._client, operation)(**parameters)
        except BotoCoreError as error:
            raise StoreUnavailable(f"KMS: {error}") from error
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in TRANSIENT:
                raise
            raise StoreUnavailable(f"KMS: {error}") from error


def _bound(context: Mapping[str, str]) -> bytes:
    """What was sealed for one run does not open as another's."""
    return json.dumps(dict(context), sort_keys=True).encode()
