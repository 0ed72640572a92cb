"""A codec for tests, and a look at everything that reaches the services."""

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

from durable.testing.interception import methods_of
from durable.testing.services import Services


class WrongKey(Exception):
    """What was sealed does not belong to this key, or to this context."""


class KeyCodec:
    """Hides bytes well enough from a test: a keystream, and a digest that binds key, context and bytes together."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.sealed = 0
        self.opened = 0

    def seal(self, data: bytes, context: Mapping[str, str]) -> bytes:
        self.sealed += 1
        return self._tag(data, context) + self._xor(data)

    def open(self, data: bytes, context: Mapping[str, str]) -> bytes:
        self.opened += 1
        opened = self._xor(data[32:])
        if self._tag(opened, context) != data[:32]:
            raise WrongKey("the seal is another one")
        return opened

    def _tag(self, data: bytes, context: Mapping[str, str]) -> bytes:
        return sha256(repr((self._key, sorted(context.items()))).encode() + data).digest()

    def _xor(self, data: bytes) -> bytes:
        stream = sha256(self._key.encode()).digest() * (len(data) // 32 + 1)
        return bytes(a ^ b for a, b in zip(data, stream, strict=False))


class Watched:
    """A service that notes everything that it is given."""

    def __init__(self, service: Any, notes: list[str]) -> None:
        self._service = service
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._service, name)
        if name not in GIVEN or not callable(member):
            return member

        def call(*args: Any, **kwargs: Any) -> Any:
            self._notes.append(f"{name} {args!r} {kwargs!r}")
            return member(*args, **kwargs)

        return call


def _given() -> Iterable[str]:
    from durable.ports import Blobs, RunQueue, StepQueue, Store, Timers  # noqa: PLC0415 - for this only

    return (name for port in (Store, RunQueue, StepQueue, Timers, Blobs) for name in methods_of(port))


GIVEN = frozenset(_given())


def watched(services: Services) -> tuple[Services, list[str]]:
    """The services, and what they are given from now on."""
    notes: list[str] = []
    seen: Callable[[Any], Any] = lambda service: Watched(service, notes)  # noqa: E731 - short for five calls
    return replace(
        services, store=seen(services.store), runs=seen(services.runs), timers=seen(services.timers),
        steps=seen(services.steps), blobs=seen(services.blobs),
    ), notes  # fmt: skip


def readable_in(secret: str, places: Iterable[str | bytes]) -> list[str]:
    """The places that hold the secret, as it is, compressed, in base64 or both."""
    return [repr(place)[:200] for place in places if any(secret.encode() in form for form in _forms(place))]


def _forms(place: str | bytes, depth: int = 0) -> Iterable[bytes]:
    data = place.encode("utf-8", "surrogatepass") if isinstance(place, str) else place
    yield data
    if depth > 2:
        return
    if data[:1] == b"x":
        with suppress(zlib.error):
            yield from _forms(zlib.decompress(data), depth + 1)
    for token in re.findall(rb"[A-Za-z0-9+/]{24,}={0,2}", data):
        try:
            yield from _forms(base64.b64decode(token), depth + 1)
        except ValueError:
            continue
