"""Tokens that are handed to outside parties: signed, so that nobody can make or change one, and good for one purpose.

A token is `base64url(claims as JSON).base64url(HMAC-SHA256 of the first part)`. The signature is compared as text, in
constant time, so of the several spellings that base64 has for the same bytes only one is accepted.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from durable.errors import InvalidToken, TokenExpired

TokenKind = Literal["task", "callback", "webhook"]

TOKEN_CHARS: Final = 8_192
"""Longer texts are not looked at; the longest location and run id make about 2,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a token says, to be read by anybody and changed by nobody."""

    kind: TokenKind
    run_id: str
    location: str
    id: str
    """Of the attempt, callback or webhook at the location."""
    expires_at: float | None = None
    """Seconds since 1970; None for a token that its run outlives."""
    extra: Mapping[str, str] = field(default_factory=dict[str, str])


_CLAIMS: TypeAdapter[Claims] = TypeAdapter(Claims)


def sign(key: bytes, claims: Claims) -> str:
    """The token: letters, digits and `-_.` only, so it fits into a path."""
    payload = _encoded(_CLAIMS.dump_json(claims))
    return f"{payload}.{_signature(key, payload)}"


def verify(keys: Sequence[bytes], token: str, *, kind: TokenKind, now: float) -> Claims:
    """What the token says, if one of the keys has signed it for this purpose and it is still good.

    Raises:
        InvalidToken: It is no token, was changed, was signed with another key, or is for another purpose.
        TokenExpired: It was good.
    """
    payload, separator, signature = token[: TOKEN_CHARS + 1].partition(".")
    if not separator or len(token) > TOKEN_CHARS or not token.isascii():
        raise InvalidToken
    # Every key is tried, whichever fits, so that the time taken tells nothing.
    fits = [hmac.compare_digest(_signature(key, payload), signature) for key in keys]
    if not any(fits):
        raise InvalidToken
    try:
        claims = _CLAIMS.validate_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, ValidationError) as error:
        raise InvalidToken from error
    if claims.kind != kind:
        raise InvalidToken
    if claims.expires_at is not None and claims.expires_at <= now:
        raise TokenExpired(claims.expires_at)
    return claims


def _signature(key: bytes, payload: str) -> str:
    return _encoded(hmac.digest(key, payload.encode("ascii"), "sha256"))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
