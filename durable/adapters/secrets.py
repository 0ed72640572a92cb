"""The secret that signs tokens, in Secrets Manager."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from durable.adapters.errors import translated
from durable.adapters.signing import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class SecretSigning:
    """Implements `Signing`; the secret is fetched once, by whoever needs it first. Most invocations need none."""

    def __init__(self, make_client: Callable[[], Any], arn: str) -> None:
        self._make_client = make_client
        self._arn = arn
        self._fetching = Lock()
        self._keys: Sequence[bytes] | None = None

    def keys(self) -> Sequence[bytes]:
        with self._fetching:
            if self._keys is None:
                with translated("Secrets Manager"):
                    text: str = self._make_client().get_secret_value(SecretId=self._arn)["SecretString"]
                self._keys = keys_of(text, "the secret for tokens (DURABLE_TOKEN_SECRET_ARN)")
            return self._keys
