"""Lanes at work: going in, coming out, and giving what is free to whoever is next.

Every change of a lane is one conditional write on its version. Who loses a race reads again; all that is done is told by
the name of the holder, so doing it twice is doing it once.

| a crash ...                                     | and then                                                       |
|-------------------------------------------------|----------------------------------------------------------------|
| after a holder came in, before it acts          | it comes in again and learns that it has a slot                |
| after a slot was granted, before its holder knows | the lane is due half a minute later: maintenance tells it    |
| after the holder was told, before that is noted | it is told once more                                           |
| of the holder, which never leaves               | when its time in the slot is up, it is asked whether it lives  |
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from zlib import crc32

from durable.errors import StoreUnavailable
from durable.lanes.holders import act, alive, remind, start_action
from durable.model import lane_changes as lanes
from durable.model.envelope import Pump
from durable.model.lane import GRANTS, Full, Lane, LaneState, Ticket
from durable.model.limits import SQS_DELAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from durable.model.lane import LaneSpec
    from durable.ports import Ports

log = logging.getLogger("durable")

TRIES: Final = 24
FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.5
"""Others write the lane too: pauses double between these, and each is cut at random, so that losers spread out."""

REPEATS: Final = 2
"""How often the same write is sent when nobody knows whether it had its effect."""

HEAD: Final = 2 * GRANTS
"""Tickets that are read: those granted and not announced lie among them, and as many must be left."""

QUESTIONS: Final = 25
"""Holders that one pump asks whether they live; the lane stays due, so the next asks the others."""

ROUNDS: Final = 40
"""Batches of grants after which a pump leaves the rest to another invocation."""

CLOCK_SKEW: Final = 2.0
"""How far the clocks of two machines may be apart."""

YOUNG_SECONDS: Final = 60.0
"""A run comes into its lane before it is created: for so long its ticket counts without it."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The caller has a slot, and does itself what it wanted it for."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whoever grants the slot will do what the ticket says."""


def enter(ports: Ports, spec: LaneSpec, ticket: Ticket) -> Granted | Waiting | Full:
    """Gets a slot, or a place in the queue; a holder that is there already keeps what it has.

    Raises StoreUnavailable where too many others want to get in or out; nothing is lost by trying again.
    """
    for tried in _tries(ports, spec.name):
        state = ports.store.read_lane(spec.name, tickets=0)
        now = ports.clock.now()
        lane = lanes.new_lane(spec, now) if state is None else lanes.under(state.lane, spec)
        held = lane.holders.get(ticket.holder)
        if held is not None:
            return Granted() if held.announced else Waiting()
        entered = lanes.enter(lane, ticket, now)
        # The first write says itself that the holder waits already; what refused it is looked at before the second.
        if (tried or isinstance(entered, Full)) and ports.store.find_ticket(spec.name, ticket.holder) is not None:
            return Waiting()
        if isinstance(entered, Full):
            return entered
        put = [] if entered.ticket is None else [entered.ticket]
        written = _write(ports, entered.lane, state, put=put)
        if written is None:
            continue
        if entered.ticket is None:
            return Granted()
        if lanes.grantable(written, now):
            pump(ports, spec.name)
        return Waiting()
    raise _too_busy(spec.name)


def enter_run(ports: Ports, spec: LaneSpec, run_id: str, *, lineage: str | None = None) -> Granted | Waiting | Full:
    """As `enter`, for a run: its ticket starts it. The holder is its lineage, so a slot stays with those who continue it."""
    ticket = Ticket(holder=lineage or run_id, action=start_action(run_id), arrived_at=ports.clock.now())
    return enter(ports, spec, ticket)


def leave(ports: Ports, name: str, holder: str, *, unless_alive: bool = True) -> None:
    """Gives up a slot, or a place in the queue, and gives what is free to the next. Twice is once.

    A run that has not ended keeps its slot: it may have been retried since somebody meant to take it out. With
    `unless_alive=False` it is taken out in any case.
    """
    for _ in _tries(ports, name):
        state = ports.store.read_lane(name, tickets=HEAD)
        if state is None:
            return
        held = state.lane.holders.get(holder)
        ticket = None
        if held is None or not held.announced:
            ticket = ports.store.find_ticket(name, holder) if held is not None or state.lane.waiting else None
            if held is None and ticket is None:
                return
        # After the lane was read: a run that comes in again later moves its version, and this write fails.
        if unless_alive and "|" not in holder and alive(ports, name, holder):
            return
        lane = lanes.leave(state.lane, holder) if held is not None else lanes.leave_queue(state.lane)
        places = [place for place in state.places if place.holder != holder]
        lane, granted = lanes.grant(lane, places, ports.clock.now())
        written = _write(ports, lane, state, remove=[] if ticket is None else [ticket])
        if written is None:
            continue
        if _tell(ports, written, granted):
            pump(ports, name)
        return
    raise _too_busy(name)


def pump(ports: Ports, name: str) -> None:
    """Takes slots back from the dead, gives what is free to the next, and tells those whom nobody has told. Twice is once."""
    for _ in range(ROUNDS):
        if not _pump_once(ports, name):
            return
    ports.timers.send(Pump(lane=name, id=ports.new_id()))


def holds(ports: Ports, name: str, holder: str) -> bool:
    """Whether somebody has a slot, told or not."""
    state = ports.store.read_lane(name, tickets=0)
    return state is not None and holder in state.lane.holders


def _pump_once(ports: Ports, name: str) -> bool:
    """Whether there is more to do."""
    for _ in _tries(ports, name):
        state = ports.store.read_lane(name, tickets=HEAD)
        if state is None:
            return False
        lane, now = state.lane, ports.clock.now()
        asked = lanes.expired(lane, now)[:QUESTIONS]
        living = [holder for holder in asked if alive(ports, name, holder)]
        for holder in living:
            remind(ports, holder)
        untold = lanes.untold(lane, now)
        lane = lanes.extended(lane, [*living, *untold], now)
        for holder in set(asked).difference(living):
            log.warning("lane %s: %s has ended without giving its slot back", name, holder)
            lane = lanes.leave(lane, holder)
        lane, granted = lanes.grant(lane, state.places, now)
        if not asked and not untold and not granted and not _timer_is_missing(lane, now, skew=CLOCK_SKEW):
            return False
        written = _write(ports, lane, state, skew=CLOCK_SKEW)
        if written is not None:
            return _tell(ports, written, [*untold, *granted]) or len(asked) == QUESTIONS
    raise _too_busy(name)


@dataclass(slots=True)
class _Told:
    """What became of telling holders of their slots."""

    tickets: list[Ticket] = field(default_factory=list[Ticket])
    """Theirs; they are not needed any more."""
    dead: list[str] = field(default_factory=list[str])
    """Whoever has ended while it waited."""


def _tell(ports: Ports, lane: Lane, holders: Sequence[str]) -> bool:
    """Does what the tickets of new holders say; whether there are further slots to be given.

    What fails here is made up for when the lane is due.
    """
    if not holders:
        return False
    told = _Told()
    try:
        for holder in holders:
            _tell_one(ports, lane.spec.name, holder, told)
    except StoreUnavailable as error:
        log.warning("lane %s: not everybody could be told of its slot: %s", lane.spec.name, error)
    try:
        return bool(told.tickets) and _note(ports, lane, told)
    except StoreUnavailable as error:
        log.warning("lane %s: those who were told of their slots will be told again: %s", lane.spec.name, error)
        return False


def _tell_one(ports: Ports, name: str, holder: str, told: _Told) -> None:
    ticket = ports.store.find_ticket(name, holder)
    if ticket is None:
        return  # it has left, or somebody else has told it
    young = ticket.arrived_at > ports.clock.now() - YOUNG_SECONDS
    if not alive(ports, name, holder, if_missing=young) or not act(ports, ticket):
        told.dead.append(holder)
    told.tickets.append(ticket)


def _note(ports: Ports, lane: Lane, told: _Told) -> bool:
    """Notes who has been told; whether there are further slots to be given."""
    state: LaneState | None = LaneState(lane, [])
    for tried in _tries(ports, lane.spec.name):
        if tried:
            state = ports.store.read_lane(lane.spec.name, tickets=0)
        if state is None:
            return False
        ours = [ticket for ticket in told.tickets if ticket.holder in state.lane.unannounced]
        if not ours:
            return False
        now = ports.clock.now()
        lane = lanes.announced(state.lane, [ticket.holder for ticket in ours if ticket.holder not in told.dead], now)
        for holder in told.dead:
            lane = lanes.leave(lane, holder)
        written = _write(ports, lane, state, remove=ours)
        if written is not None:
            return lanes.grantable(written, now)
    raise _too_busy(lane.spec.name)


def _write(
    ports: Ports, lane: Lane, state: LaneState | None, *, put: Sequence[Ticket] = (), remove: Sequence[Ticket] = (),
    skew: float = 0.0,
) -> Lane | None:  # fmt: skip
    """The lane as it was written; None if somebody else has written it meanwhile.

    A timer that the rate needs is set before: nobody would know of one that was lost after the write.
    """
    now = ports.clock.now()
    if _timer_is_missing(lane, now, skew=skew):
        allowed_at = lanes.rate_allows_at(lane, now) or now
        ports.timers.send(Pump(lane=lane.spec.name, id=ports.new_id()), delay=min(allowed_at - now, SQS_DELAY_SECONDS))
        lane = replace(lane, armed=min(allowed_at, now + SQS_DELAY_SECONDS))
    lane = lanes.stamped(lane, now, ports.new_id())
    expected = None if state is None else state.lane.version
    for repeat in range(REPEATS):
        try:
            written = ports.store.write_lane(lane, expected_version=expected, put=put, remove=remove)
        except StoreUnavailable as error:  # also two transactions on one lane, of which one is refused
            log.debug("lane %s: try %d: %s", lane.spec.name, repeat, error)
            _pause(ports, repeat)
        else:
            return lane if written else None
    return None


def _timer_is_missing(lane: Lane, now: float, *, skew: float) -> bool:
    """Whether the queue waits for its rate and no timer will say when it may go on.

    A pump may be what the timer asks for, on a machine whose clock says that it is yet to fire.
    """
    if lanes.rate_allows_at(lane, now) is None:
        return False
    return lane.armed is None or lane.armed <= now + skew


def _tries(ports: Ports, name: str) -> Iterator[int]:
    for tried in range(TRIES):
        if tried:
            log.debug("lane %s: somebody else was faster; try %d", name, tried + 1)
            _pause(ports, tried)
        yield tried


def _pause(ports: Ports, tried: int) -> None:
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**tried)
    ports.clock.sleep(longest * crc32(ports.new_id().encode()) / 2**32)


def _too_busy(name: str) -> StoreUnavailable:
    return StoreUnavailable(f'lane "{name}" was changed by others between {TRIES} tries to change it')
