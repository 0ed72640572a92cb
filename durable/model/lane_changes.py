"""How a lane changes: who gets a slot, who waits, and who is next. Pure functions.

Who comes next: the higher priority; then, in a fair lane, the key that has had least of late; then who came first, or last.

Fairness is start-time fair queueing (Goyal, Vin, Cheng 1996): a ticket's tag is one more than the tag before it under the
same key, but never behind the lane's virtual time, which is the largest tag that was served. So a key that was idle
begins where the others are: it neither waits for their backlog nor is paid for its absence.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable.model.lane import GRANTS, HOLDERS, PRIORITY, Entered, Full, Holder, Lane
from durable.model.run import first_epoch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from durable.model.lane import LaneSpec, Place, Ticket

FAIR_KEYS: Final = 256
"""Keys of a fair lane that are told apart while all of them wait; further ones share `SHARED_KEYS` places."""

SHARED_KEYS: Final = 64

LEASE_SECONDS: Final = 300.0
"""How long a slot is held before somebody asks whether its holder still lives."""

FIRST_LEASE_SECONDS: Final = 60.0
"""The same for the first time: whoever dies just after it was granted a slot does not keep it for long."""

ANNOUNCE_SECONDS: Final = 30.0
"""How long whoever granted a slot has to tell its holder, before others do."""

ALMOST: Final = 1e-6
"""Tokens come in fractions; this much of one may be missing."""

_LAST_SEQUENCE: Final = 10**15 - 1

HOLDERS_BYTES: Final = 200 * 1024
"""Where the names of holders are long there are fewer slots: an item has at most 400 KB (DynamoDB quotas)."""


def new_lane(spec: LaneSpec, now: float) -> Lane:
    """A lane that nobody has used."""
    tokens = 0.0 if spec.rate is None else float(spec.rate.limit)
    return Lane(spec=spec, version=first_epoch(now), tokens=tokens, refilled_at=now)


def under(lane: Lane, spec: LaneSpec) -> Lane:
    """The lane with the limits that the deployed code asks for; whoever holds a slot keeps it."""
    if lane.spec == spec:
        return lane
    if spec.rate is not None and lane.spec.rate is None:
        return replace(lane, spec=spec, tokens=float(spec.rate.limit))
    return replace(lane, spec=spec)


def enter(lane: Lane, ticket: Ticket, now: float) -> Entered | Full:
    """Gives a slot if one is free and nobody waits, else a place in the queue."""
    if not lane.waiting and _free(lane, now) > 0:
        tag = _next_tag(lane, ticket.fairness_key)
        lane = _admitted(_with_tag(lane, ticket.fairness_key, tag), ticket.holder, tag, now, announced=True)
        return Entered(lane, None)
    most = lane.spec.max_queue
    if most is not None and lane.waiting >= most:
        return Full(lane.waiting, most)
    tag = _next_tag(lane, ticket.fairness_key)
    queued = replace(_with_tag(lane, ticket.fairness_key, tag), waiting=lane.waiting + 1)
    return Entered(queued, replace(ticket, rank=_rank(lane, ticket.priority, tag)))


def leave(lane: Lane, holder: str) -> Lane:
    """Takes the slot back."""
    return replace(lane, holders={name: held for name, held in lane.holders.items() if name != holder})


def leave_queue(lane: Lane) -> Lane:
    """Takes one that waits out of the count."""
    return replace(lane, waiting=max(0, lane.waiting - 1))


def grant(lane: Lane, places: Iterable[Place], now: float) -> tuple[Lane, list[str]]:
    """Gives free slots to the first who wait, and says to whom: they have yet to be told."""
    granted: list[str] = []
    room = GRANTS - len(lane.unannounced)
    for place in places:
        if place.holder in lane.holders:
            continue
        if len(granted) >= room or _free(lane, now) <= 0:
            break
        lane = leave_queue(_admitted(lane, place.holder, _tag_of(place.rank), now, announced=False))
        granted.append(place.holder)
    return lane, granted


def neglected(lane: Lane) -> bool:
    """Whether something is owed to somebody by the time that the lane is due: not only a question to its holders."""
    return bool(lane.unannounced) or (lane.waiting > 0 and _slots_free(lane) > 0)


def grantable(lane: Lane, now: float) -> bool:
    """Whether somebody waits whom a slot could be given now."""
    return lane.waiting > 0 and _free(lane, now) > 0


def announced(lane: Lane, holders: Iterable[str], now: float) -> Lane:
    """Notes that these know of their slots; in a lane without slots there is nothing more to know of them."""
    told = {name: Holder(now + FIRST_LEASE_SECONDS) for name in holders if name in lane.holders}
    if lane.spec.limit is not None:
        return replace(lane, holders={**lane.holders, **told})
    return replace(lane, holders={name: held for name, held in lane.holders.items() if name not in told})


def expired(lane: Lane, now: float) -> list[str]:
    """Holders that were told of their slots, and must be asked whether they live; the longest silent first."""
    late = [(held.until, name) for name, held in lane.holders.items() if held.announced and held.until <= now]
    return [name for _, name in sorted(late)]


def untold(lane: Lane, now: float) -> list[str]:
    """Holders that somebody has granted a slot and then not told in time."""
    return [name for name in lane.unannounced if lane.holders[name].until <= now]


def extended(lane: Lane, holders: Iterable[str], now: float) -> Lane:
    """Leaves these their slots for another while, or to us the telling."""
    longer = {
        name: replace(held, until=now + (LEASE_SECONDS if held.announced else ANNOUNCE_SECONDS))
        for name in holders
        if (held := lane.holders.get(name)) is not None
    }
    return replace(lane, holders={**lane.holders, **longer})


def rate_allows_at(lane: Lane, now: float) -> float | None:
    """When the next token comes, if somebody waits for it and for nothing else; None otherwise."""
    if not lane.waiting or _slots_free(lane) <= 0 or _tokens(lane, now) >= 1 - ALMOST:
        return None
    return _tokens_at(lane, now, 1.0)


def stamped(lane: Lane, now: float, writer: str) -> Lane:
    """The lane as it is to be written: one version further, and due when somebody must look at it."""
    moments = [held.until for held in lane.holders.values()]
    if lane.waiting and _slots_free(lane) > 0:
        moments.append((rate_allows_at(lane, now) or now) + ANNOUNCE_SECONDS)
    full_at = _tokens_at(lane, now, float(lane.spec.rate.limit)) if lane.spec.rate is not None else now
    return replace(
        lane, version=lane.version + 1, writer=writer, due_at=min(moments, default=None),
        expires_at=full_at if lane.idle and full_at > now else None,
    )  # fmt: skip


def _slots_free(lane: Lane) -> int:
    most = HOLDERS if lane.spec.limit is None else min(lane.spec.limit, HOLDERS)
    if sum(map(len, lane.holders)) >= HOLDERS_BYTES:
        return 0
    return most - len(lane.holders)


def _free(lane: Lane, now: float) -> int:
    slots = _slots_free(lane)
    if lane.spec.rate is None:
        return slots
    return min(slots, int(_tokens(lane, now) + ALMOST))


def _admitted(lane: Lane, holder: str, tag: int, now: float, *, announced: bool) -> Lane:
    """With one slot and one token less; a lane without slots remembers only whom it has yet to tell."""
    holders = dict(lane.holders)
    if lane.spec.limit is not None or not announced:
        holders[holder] = Holder(now + (FIRST_LEASE_SECONDS if announced else ANNOUNCE_SECONDS), announced)
    if lane.spec.rate is not None:
        tokens = max(0.0, _tokens(lane, now) - 1.0)
        lane = replace(lane, tokens=tokens, refilled_at=max(now, lane.refilled_at))
    virtual = max(lane.virtual, tag)
    tags = {key: next_tag for key, next_tag in lane.tags.items() if next_tag > virtual}
    return replace(lane, holders=holders, virtual=virtual, tags=tags)


def _tokens(lane: Lane, now: float) -> float:
    rate = lane.spec.rate
    if rate is None:
        return 0.0
    # Clocks differ: time that goes back brings no tokens and takes none.
    return min(float(rate.limit), lane.tokens + max(0.0, now - lane.refilled_at) * rate.limit / rate.per)


def _tokens_at(lane: Lane, now: float, wanted: float) -> float:
    """When there are so many tokens."""
    rate = lane.spec.rate
    if rate is None:
        return now
    return max(now, lane.refilled_at) + max(0.0, wanted - _tokens(lane, now)) * rate.per / rate.limit


def _next_tag(lane: Lane, key: str) -> int:
    return max(lane.virtual, lane.tags.get(_place_of(lane, key), 0)) if lane.spec.fair else 0


def _with_tag(lane: Lane, key: str, tag: int) -> Lane:
    return replace(lane, tags={**lane.tags, _place_of(lane, key): tag + 1}) if lane.spec.fair else lane


def _place_of(lane: Lane, key: str) -> str:
    """Where the tag of a key is kept: under its digest, or with others where many keys wait."""
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    if digest in lane.tags or len(lane.tags) < FAIR_KEYS:
        return digest
    return f"~{int(digest, 16) % SHARED_KEYS}"


def _rank(lane: Lane, priority: int, tag: int) -> str:
    """Sorts by priority, tag and arrival. The version after this change numbers the arrivals without gaps or clocks."""
    urgency = PRIORITY - max(-PRIORITY, min(PRIORITY, priority))
    sequence = lane.version + 1
    if lane.spec.order == "lifo":
        sequence = _LAST_SEQUENCE - sequence
    return f"{urgency:04d}.{tag:012d}.{sequence:015d}"


def _tag_of(rank: str) -> int:
    return int(rank.split(".")[1])
