"""Locations: the addresses of operations in a run's history, and their short digests."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from durable.errors import InvalidName, LimitExceeded
from durable.model.limits import LOCATION_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

SPECIAL: Final = re.compile(r"[%/#?@~!^\[\]\x00-\x1f\x7f]")
"""What separates the parts of a location and its marks, and control characters."""

SURELY_SHORT: Final = LOCATION_BYTES // 4
"""So many characters fit whatever they are: UTF-8 has at most four bytes for one."""
_WHOLE: Final = 6  # bytes of a digest: 8 characters
_LEVEL: Final = 3  # bytes of each level's digest: 4 characters
_WHOLE_CHARS: Final = 8
_LEVEL_CHARS: Final = 4


@lru_cache(4096)
def escape(name: str) -> str:
    """The name as one part of a location: `a/b` becomes `a%2Fb`."""
    if not name:
        raise InvalidName("operation name", name, "it is empty")
    whole = name.encode("utf-8", "backslashreplace").decode()  # half a character (a lone surrogate) has no encoding
    return SPECIAL.sub(lambda match: f"%{ord(match.group()):02X}", whole)


def check_length(location: str) -> str:
    """Gives the location back, or raises LimitExceeded when it would not fit into a sort key."""
    if len(location) > SURELY_SHORT and (size := len(location.encode())) > LOCATION_BYTES:
        raise LimitExceeded(
            f'the location "{location[:60]}..."',
            size,
            LOCATION_BYTES,
            instead="Use shorter names or fewer nested scopes.",
        )
    return location


@lru_cache(16_384)  # a settle asks for all waits of a run, and the next turn of a warm container again
def digest(location: str, kind: str) -> str:
    """A short text that stands for a wait: 8 characters, and 4 more for each scope around it.

    The second part lets `lies_within` tell where the wait is without its location.
    """
    return _hash(f"{kind} {location}", _WHOLE) + "".join(_hash(scope, _LEVEL) for scope in enclosing(location))


def enclosing(location: str) -> Iterator[str]:
    """The scopes around a location, outermost first: for `poll[3]/fetch` the loop `poll` and its iteration `poll[3]/`."""
    end = location.find("/")
    while end >= 0:
        if location[end - 1] == "]":
            yield location[: location.rindex("[", 0, end)]
        yield location[: end + 1]
        end = location.find("/", end + 1)


def lies_within(wait: str, scope: str) -> bool:
    """Whether the wait with this digest lies in a scope as `enclosing` names it (wrong once in 16 million)."""
    wanted = _hash(scope, _LEVEL)
    levels = range(_WHOLE_CHARS, len(wait), _LEVEL_CHARS)
    return any(wait[start : start + _LEVEL_CHARS] == wanted for start in levels)


def _hash(text: str, size: int) -> str:
    return urlsafe_b64encode(blake2b(text.encode(), digest_size=size).digest()).decode()
