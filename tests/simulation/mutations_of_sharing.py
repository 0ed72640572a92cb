"""Ways to break one rule each of what many runs share: lanes, singletons, events, entities."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from durable import codec
from durable.adapters.memory import MemoryStore
from durable.engine import effects, orchestrator, pickup, reporting, turn
from durable.engine import worker as _worker
from durable.engine.dispatching import Dispatcher
from durable.engine.entities import answer_recorded
from durable.engine.events import PAGE, subscribe
from durable.engine.turn import Turns
from durable.lanes import slots
from durable.model import lane_changes
from durable.model.call import order_from, task_of
from durable.model.entry import Entry
from durable.model.envelope import Publish
from durable.model.lane import Lane
from durable.model.message import StoredMessage
from durable.model.run import Run
from durable.model.subscription import BufferedEvent, SubscriptionPage, Taken, awaited_from
from durable.ports import Ports
from durable.testing.simulation.workloads.effects import effects as world
from tests.simulation.mutations import Mutation


class LastWriterWinsStore(MemoryStore):
    """Writes a lane whatever its version is."""

    def write_lane(self, lane: Lane, *, expected_version: int | None, **tickets: Any) -> bool:
        state = self.read_lane(lane.spec.name, tickets=0)
        return super().write_lane(lane, expected_version=state and state.lane.version, **tickets)


class NeglectfulStore(MemoryStore):
    """Finds no lane that somebody should look after."""

    def due_lanes(self, *, before: float, limit: int) -> Sequence[str]:
        return []


class LateKeepingStore(MemoryStore):
    """Keeps an event after the list of those who wait is read."""

    _later: BufferedEvent | None = None

    def put_buffered(self, event: BufferedEvent) -> None:
        self._later = event

    def subscriptions(self, event: str, *, cursor: str | None = None, limit: int = 100) -> SubscriptionPage:
        page = super().subscriptions(event, cursor=cursor, limit=limit)
        later = self._later
        if later is not None and later.event == event and limit == PAGE:
            self._later = None
            world.sleep(1.0)
            super().put_buffered(later)
        return page


class GenerousStore(MemoryStore):
    """Lets a run have an event at one place after the other."""

    def take_event(
        self, event: str, event_id: str, run_id: str, location: str, *, at: float, expires_at: float
    ) -> Taken:
        super().take_event(event, event_id, run_id, location, at=at, expires_at=expires_at)
        return Taken(location, at)


def left_first(ports: Ports, attempt: Any, outcome: Any, *, report: Any = reporting.report) -> None:
    """Gives a slot back before the run has the result."""
    reporting.leave_lane(ports, attempt)
    report(ports, attempt, outcome)


def never_sent(ports: Ports, name: str, holder: str, told: Any) -> None:
    """Forgets to do what a ticket says."""
    ticket = ports.store.find_ticket(name, holder)
    if ticket is not None:
        told.tickets.append(ticket)


def last_first(lane: Lane, places: Any, now: float, *, grant: Any = lane_changes.grant) -> Any:
    """Gives free slots to the last in line."""
    return grant(lane, list(places)[::-1], now)


def unlimited(lane: Lane, now: float) -> float:
    """There is always a token."""
    return 0.0 if lane.spec.rate is None else float(lane.spec.rate.limit)


def told_once(app: Any, ports: Ports, event: Publish, *, publish: Any = orchestrator.publish, **facts: Any) -> None:
    """Acknowledges an event before it is handed on: who dies then has lost it."""
    begun: set[Any] = world.notes.setdefault("begun", set())
    if (event.id, event.cursor) not in begun:
        begun.add((event.id, event.cursor))
        publish(app, ports, event, **facts)


def looked_before(ports: Ports, run: Run, entry: Entry) -> StoredMessage | None:
    """Looks for kept events, and is listed then."""
    kept = [
        one
        for one in ports.store.buffered(awaited_from(entry.value).event, now=ports.clock.now())
        if awaited_from(entry.value).fits(codec.decode(one.body, codec.UNTYPED))
    ]
    return subscribe(ports if kept else replace(ports, store=_Empty(ports.store)), run, entry)


class _Empty:
    """The store, as one that has looked too early remembers it: without kept events."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return (lambda *_, **__: ()) if name == "buffered" else getattr(self._store, name)


def listed_later(ports: Ports, run: Run, entry: Entry) -> None:
    """Is listed when the turn is over."""
    world.notes.setdefault("to list", []).append((ports, run, entry))


def then_listed(self: Turns, *args: Any, settle: Any = Turns._settle, **facts: Any) -> Any:
    answer = settle(self, *args, **facts)
    waiting: list[Any] = world.notes.get("to list", [])
    for one in [one for one in waiting if one[0] is self.ports]:
        waiting.remove(one)
        subscribe(*one)
    return answer


def answered_first(self: Dispatcher, operation: Any, *, perform: Any = Dispatcher.perform) -> Any:
    """Answers before the operation is recorded."""
    if operation.kind == "loop":
        value = operation.record_text(self._stamp)
        entry = self._writer._entry(operation, operation.mark, self._writer._n + 1, {"value": value})
        answer_recorded(self._ports, self._run, entry)
    return perform(self, operation)


def sent_at_once(ports: Ports, run: Run, opened: Entry) -> None:
    """Sends an attempt whether it has a slot or not."""
    ports.steps.send(task_of(run, opened, order_from(opened.value)))


IMPATIENT = (lane_changes, "FIRST_LEASE_SECONDS", 2.0)

MUTATIONS_OF_SHARING = [
    Mutation("without_a_slot", "an attempt is sent when it has a slot", "limited",
             patches=[(effects, "send_attempt", sent_at_once)]),
    Mutation("version_ignored", "a lane is written only over what was read", "limited", store=LastWriterWinsStore),
    Mutation("left_before_told", "a slot is given back after the result is told", "limited",
             patches=[(module, "report", left_first) for module in (pickup, _worker)]),
    Mutation("granted_in_vain", "whoever is granted a slot is told", "limited",
             patches=[(slots, "_tell_one", never_sent)]),
    Mutation("lanes_neglected", "maintenance tells those whom nobody has told", "limited", store=NeglectfulStore),
    Mutation("living_reclaimed", "only the dead lose their slots", "limited",
             patches=[IMPATIENT, (slots, "alive", lambda *_, if_missing=None: if_missing is not None)]),
    Mutation("dead_never_reclaimed", "the dead lose their slots", "singletons",
             patches=[(slots, "alive", lambda *_, **__: True)]),
    Mutation("last_first", "the first in line is next", "singletons",
             patches=[(lane_changes, "grant", last_first)]),
    Mutation("rate_ignored", "a rate limits how often slots are given", "limited",
             patches=[(lane_changes, "_tokens", unlimited)]),
    Mutation("unadmitted", "a run without a slot does not go on", "singletons",
             patches=[(turn, "admitted", lambda *_: True)]),
    Mutation("event_told_once", "an event is acknowledged after everybody is told", "happenings",
             patches=[(orchestrator, "publish", told_once)]),
    Mutation("kept_late", "an event is kept before the list is read", "happenings", store=LateKeepingStore),
    Mutation("looked_before_listed", "a run is listed before it looks for kept events", "happenings",
             patches=[(effects, "subscribe", looked_before)]),
    Mutation("listed_after_the_turn", "a run is listed before its turn is settled", "happenings",
             patches=[(effects, "subscribe", listed_later), (Turns, "_settle", then_listed)]),
    Mutation("had_twice", "a run has an event once", "happenings", store=GenerousStore),
    Mutation("answered_first", "an operation is recorded before it is answered", "ledgers",
             patches=[(Dispatcher, "perform", answered_first)]),
]  # fmt: skip
