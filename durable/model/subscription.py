"""Events: who waits for which, and those that are kept for waiters that come late."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import TypeAdapter

from durable.errors import InvalidName
from durable.model.ids import check_new_run_id
from durable.model.location import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

Scalar = str | int | float | bool | None
"""What a payload's field is compared with."""

TAKEN_SECONDS: Final = 15 * 86_400.0
"""How long it is known which runs have had an event: longer than a queue keeps a message (SQS quotas: 14 days)."""

NOTHING: Final = object()
"""No value of JSON."""


@dataclass(frozen=True, slots=True)
class MatchKey:
    """One thing that is asked of a payload."""

    path: tuple[tuple[str, ...], ...]
    """Step by step into the payload; a field has as many names as its model has aliases for it."""
    value: Scalar

    def holds(self, payload: object) -> bool:
        """Whether the payload has this value there."""
        found = at_path(payload, self.path)
        return found == self.value and isinstance(found, bool) == isinstance(self.value, bool)


def at_path(payload: object, path: Sequence[Sequence[str]]) -> object:
    """What a payload holds there: `NOTHING` where there is no such field."""
    for names in path:
        if not isinstance(payload, dict):
            return NOTHING
        members = cast("dict[str, Any]", payload)
        name = next((name for name in names if name in members), None)
        if name is None:
            return NOTHING
        payload = members[name]
    return payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """What a run waits for: the value of the entry that records it."""

    event: str
    match: tuple[MatchKey, ...] = ()

    def to_text(self) -> str:
        """The JSON text that is recorded."""
        return _AWAITED.dump_json(self).decode()

    def fits(self, payload: object) -> bool:
        """Whether an event of this name with this payload is meant."""
        return all(key.holds(payload) for key in self.match)


_AWAITED: TypeAdapter[Awaited] = TypeAdapter(Awaited)


def awaited_from(text: str | None) -> Awaited:
    """Reads what `to_text` wrote."""
    return _AWAITED.validate_json(text or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A run that waits for an event, and the location of the operation that does."""

    awaited: Awaited
    run_id: str
    location: str
    since: float
    """When it began to wait, seconds since 1970."""

    @property
    def event(self) -> str:
        """The event's name."""
        return self.awaited.event


@dataclass(frozen=True, slots=True)
class SubscriptionPage:
    """Some of those who wait for an event."""

    subscriptions: Sequence[Subscription]
    cursor: str | None
    """Where the next page begins; None after the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferedEvent:
    """An event that nobody waited for, kept for waiters that come late."""

    event: str
    id: str
    body: str
    """JSON text."""
    at: float
    """When it was accepted, seconds since 1970."""
    until: float
    """How long it is kept, seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Taken:
    """That a run has had an event: the first of its operations that did."""

    location: str
    at: float


def event_message_id(event_id: str, location: str) -> str:
    """The id under which an operation of a run receives an event: the same however often it is delivered."""
    return f"evt:{event_id}:{digest(location, 'event')}"


def event_run_id(event_id: str, workflow: str) -> str:
    """The id of the run of a workflow that an event starts; a hash where that could not be one."""
    whole = f"evt:{event_id}:{workflow}"
    with suppress(InvalidName):
        return check_new_run_id(whole)
    return f"evt:{sha256(whole.encode()).hexdigest()[:32]}"
