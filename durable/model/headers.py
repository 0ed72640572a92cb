"""Headers of a run: trace context and whatever else its starter gives on to everything that the run sets going."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from durable.errors import InvalidInput, InvalidName, LimitExceeded
from durable.model.limits import HEADER_BYTES

TRACE: Final = ("traceparent", "tracestate", "baggage")
"""What tracing libraries send (https://www.w3.org/TR/trace-context/, https://www.w3.org/TR/baggage/)."""

PREFIX: Final = "durable-"
"""Begins the HTTP headers that are meant for a run and nobody on the way."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """A copy of the headers; refuses names that HTTP or queues would change, odd values, and more than 512 bytes in all."""
    if not isinstance(headers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller is checked
        raise InvalidInput("headers", f"a mapping of texts to texts is expected, not {type(headers).__name__}")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - the same
            raise InvalidInput("headers", f"{name!r} is no pair of texts; write the value as a text")
        if not _NAME.fullmatch(name):
            raise InvalidName(
                "header", name, "lower-case letters, digits and . _ - only, starting with a letter or digit"
            )
        if not value.isprintable():
            raise InvalidInput(f'header "{name}"', "its value has characters that cannot be printed")
    if (size := _size(headers)) > HEADER_BYTES:
        raise LimitExceeded("the text of all headers", size, HEADER_BYTES)
    return dict(headers)


def headers_of_request(request: Mapping[str, str]) -> dict[str, str]:
    """What an HTTP request gives a run: its `durable-*` headers and its trace context; names are lower case there.

    Caller and proxies add to trace state and baggage without knowing of our limit, and may lose them on the way: they
    are left out where they do not fit. What is meant for the run is refused then.
    """
    taken = check_headers({name: value for name, value in request.items() if name.startswith(PREFIX)})
    for name in TRACE:
        value = request.get(name)
        if value and value.isprintable() and _size(larger := {**taken, name: value}) <= HEADER_BYTES:
            taken = larger
    return taken


def _size(headers: Mapping[str, str]) -> int:
    return sum(len(name) + len(value.encode("utf-8", "surrogatepass")) for name, value in headers.items())
