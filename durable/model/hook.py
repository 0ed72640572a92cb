"""What callers of a webhook are answered, and what a run gets of their calls: both are said inside its address."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import TypeAdapter

from durable.errors import InvalidInput, LimitExceeded

RESPONSE_BYTES: Final = 2_048
"""A response travels in the address, and addresses are at most about 8,000 characters (API Gateway quotas)."""

KEY: Final = "respond"
"""Where a token's `extra` has it."""

WHOLE: Final = "whole"
"""Where a token's `extra` says that the run wants whole requests."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VISIBLE: Final = re.compile(r"[\t -~]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResponse:
    """What a webhook answers its callers.

    Some providers check an address before they use it: they send a GET whose query holds a text that they want back.
    `challenge` is the name of that parameter (`hub.challenge`); without one a GET is refused.
    """

    status: int = 202
    body: str = ""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    challenge: str | None = None

    def __post_init__(self) -> None:
        if not 200 <= self.status <= 599:  # what HTTP calls final
            raise InvalidInput("HookResponse(status=...)", f"{self.status} is not a number from 200 to 599")
        for name, value in (("content-type", self.content_type), *self.headers.items()):
            if not _TOKEN.fullmatch(name) or not _VISIBLE.fullmatch(value):
                raise InvalidInput(f"the header {name!r} of a HookResponse", "visible ASCII characters only")

    def to_extra(self) -> dict[str, str]:
        """Its part of a token; raises LimitExceeded where it does not fit into an address."""
        text = _ADAPTER.dump_json(self, exclude_defaults=True).decode()
        if text == "{}":
            return {}
        if (size := len(text.encode())) > RESPONSE_BYTES:
            raise LimitExceeded("the response of a webhook", size, RESPONSE_BYTES, instead="It is part of the address.")
        return {KEY: text}


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRequest:
    """A whole call of a webhook, as `ctx.webhook(..., whole=True)` gives it: what a provider's signature is made over."""

    body: str
    """As it came, byte for byte: text, or base64 where `is_base64` says so."""
    is_base64: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in lower case."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def raw(self) -> bytes:
        """The bytes of the body."""
        return base64.b64decode(self.body) if self.is_base64 else self.body.encode()


_ADAPTER: TypeAdapter[HookResponse] = TypeAdapter(HookResponse)
DEFAULT: Final = HookResponse()


def response_in(extra: Mapping[str, str]) -> HookResponse:
    """The response that a token carries."""
    return _ADAPTER.validate_json(extra[KEY]) if KEY in extra else DEFAULT
