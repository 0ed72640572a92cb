"""A lane: a limited number of slots, those who hold them, and those who wait for one. How it changes: `lane_changes.py`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

Order = Literal["fifo", "lifo"]

HOLDERS: Final = 1_000
"""Most slots of a lane: its holders live in one item, which every change writes again."""

GRANTS: Final = 25
"""Slots that may be granted and not yet announced at a time: a transaction has at most 100 items (DynamoDB quotas)."""

PRIORITY: Final = 1_000
"""Priorities are whole numbers from minus this to this."""

NAME_BYTES: Final = 200
"""Longer names of lanes are hashed; a name is part of a key and of a queue message."""


@dataclass(frozen=True, slots=True)
class LaneRate:
    """`limit` grants in every `per` seconds on average, and as many at once after a pause."""

    limit: int
    per: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSpec:
    """What an app says about a lane."""

    name: str
    limit: int | None = None
    """Slots; None for a lane that only has a rate."""
    rate: LaneRate | None = None
    order: Order = "fifo"
    fair: bool = False
    max_queue: int | None = None
    """How many may wait; None for any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneClaim:
    """What somebody must have a slot of, and how urgently: all that it takes to come in, now or once more."""

    spec: LaneSpec
    priority: int = 0
    fairness_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Somebody who wants a slot."""

    holder: str
    action: str
    """JSON text of what to do once it is granted: `{"task": ...}` or `{"start": "<run id>"}`."""
    arrived_at: float
    """Seconds since 1970, for people and for telling the young from the dead; the order is the lane's own."""
    priority: int = 0
    fairness_key: str = ""
    rank: str = ""
    """Its place: tickets are served in the order of their ranks. Given by the lane."""


@dataclass(frozen=True, slots=True)
class Place:
    """A ticket as the queue shows it."""

    rank: str
    holder: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody who has a slot."""

    until: float
    """When to ask whether it lives; of one that has not been told of its slot, when others may tell it."""
    announced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A snapshot of a lane."""

    spec: LaneSpec
    """As the latest to enter had it."""
    version: int
    """Grows with every change and never returns, not even after the lane was deleted."""
    writer: str = ""
    """Token of the request that wrote it: its retry recognises its own success."""
    holders: Mapping[str, Holder] = field(default_factory=dict[str, Holder])
    waiting: int = 0
    virtual: int = 0
    tags: Mapping[str, int] = field(default_factory=dict[str, int])
    """By key, the tag of its next ticket, of keys that are ahead of the virtual time."""
    tokens: float = 0.0
    refilled_at: float = 0.0
    armed: float | None = None
    """When the timer fires that was set because of the rate."""
    due_at: float | None = None
    """When maintenance is to look at it, whatever else happens."""
    expires_at: float | None = None
    """Of an idle lane: when its rate allows everything again, so that nothing need be remembered."""

    @property
    def idle(self) -> bool:
        """Whether nobody has a slot or wants one."""
        return not self.holders and not self.waiting

    @property
    def forgettable(self) -> bool:
        """Whether a lane that is made anew would be the same."""
        return self.idle and self.expires_at is None

    @property
    def unannounced(self) -> list[str]:
        """Who has a slot and has not been told."""
        return [name for name, holder in self.holders.items() if not holder.announced]


@dataclass(frozen=True, slots=True)
class LaneState:
    """A lane and the tickets at the head of its queue, those of holders that were not told yet included."""

    lane: Lane
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class Entered:
    """The lane after somebody has come in; `ticket` has its rank if it must wait, and is None if it has a slot."""

    lane: Lane
    ticket: Ticket | None


@dataclass(frozen=True, slots=True)
class Full:
    """Nobody else may wait."""

    waiting: int
    limit: int


def lane_name(kind: Literal["queue", "singleton"], name: str, key: str | None = None) -> str:
    """The name of a lane: `queue:labels`, `queue:labels:customer-7`; hashed where it would be long."""
    whole = ":".join(
        (kind, *(quote(part, safe="", errors="backslashreplace") for part in (name, key) if part is not None))
    )
    if len(whole) <= NAME_BYTES:
        return whole
    return f"{kind}:#{hashlib.sha256(whole.encode()).hexdigest()}"


def slot_reason(lane: str) -> str:
    """What the record of a run says that waits for a slot, until it has had a turn with one."""
    return f"a slot of {lane}"
