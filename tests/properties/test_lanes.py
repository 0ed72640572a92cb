"""Whatever comes and goes: a lane never gives more slots than it has, loses nobody, and starves nobody."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from durable.model import lane_changes as lanes
from durable.model.lane import GRANTS, Entered, Full, Lane, LaneRate, LaneSpec, Place, Ticket

NOW = 1_796_000_000.0
KEYS = ["a", "b", "c"]


class LaneMachine(RuleBasedStateMachine):
    """The lane with its queue, as a store would keep them, and what has become of everybody who came."""

    @initialize(
        limit=st.one_of(st.none(), st.integers(1, 4)),
        rate=st.one_of(st.none(), st.builds(LaneRate, st.integers(1, 5), st.floats(0.5, 20.0))),
        order=st.sampled_from(["fifo", "lifo"]),
        fair=st.booleans(),
        max_queue=st.one_of(st.none(), st.integers(0, 6)),
    )
    def begin(self, limit: Any, rate: Any, order: Any, fair: bool, max_queue: Any) -> None:
        fair = fair and order == "fifo"
        self.spec = LaneSpec(name="queue:x", limit=limit, rate=rate, order=order, fair=fair, max_queue=max_queue)
        self.now = NOW
        self.lane: Lane = lanes.new_lane(self.spec, self.now)
        self.queue: dict[str, Ticket] = {}
        self.numbers = iter(range(100_000))
        self.slots: set[str] = set()
        self.grants: list[float] = []

    def store(self, lane: Lane) -> None:
        assert lane.version >= self.lane.version
        self.lane = lanes.stamped(lane, self.now, "writer")

    def places(self) -> list[Place]:
        return sorted((Place(t.rank, t.holder) for t in self.queue.values()), key=lambda place: place.rank)

    @rule(priority=st.integers(-2, 2), key=st.sampled_from(KEYS))
    def enter(self, priority: int, key: str) -> None:
        holder = f"run-{next(self.numbers)}"
        ticket = Ticket(holder=holder, action="{}", arrived_at=self.now, priority=priority, fairness_key=key)
        entered = lanes.enter(self.lane, ticket, self.now)
        if isinstance(entered, Full):
            assert self.lane.waiting >= (self.spec.max_queue or 0)
            return
        if entered.ticket is None:
            assert not self.queue.keys() - self.lane.holders.keys(), "nobody is overtaken"
            self.grants.append(self.now)
            if self.spec.limit is not None:
                self.slots.add(holder)
        else:
            assert entered.ticket.rank not in {other.rank for other in self.queue.values()}
            self.queue[holder] = entered.ticket
        self.store(entered.lane)

    @rule()
    def grant(self) -> None:
        before = [place.holder for place in self.places() if place.holder not in self.lane.holders]
        lane, granted = lanes.grant(self.lane, self.places(), self.now)
        assert granted == before[: len(granted)], "the first are served first"
        assert not lanes.grantable(lane, self.now) or len(lane.unannounced) == GRANTS
        self.grants += [self.now] * len(granted)
        self.slots.update(granted)
        self.store(lane)

    @precondition(lambda self: self.lane.unannounced)
    @rule()
    def announce(self) -> None:
        told = self.lane.unannounced
        self.store(lanes.announced(self.lane, told, self.now))
        for holder in told:
            del self.queue[holder]
            if self.spec.limit is None:
                self.slots.discard(holder)

    @precondition(lambda self: self.lane.holders)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(sorted(self.lane.holders)))
        self.queue.pop(holder, None)
        self.slots.discard(holder)
        self.store(lanes.leave(self.lane, holder))

    @precondition(lambda self: self.queue.keys() - self.lane.holders.keys())
    @rule(data=st.data())
    def leave_the_queue(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(sorted(self.queue.keys() - self.lane.holders.keys())))
        del self.queue[holder]
        self.store(lanes.leave_queue(self.lane))

    @rule(seconds=st.floats(0.0, 400.0), alive=st.booleans())
    def time_passes(self, seconds: float, alive: bool) -> None:
        self.now += seconds
        late = lanes.expired(self.lane, self.now)
        lane = lanes.extended(self.lane, late, self.now)
        if not alive:
            for holder in late:
                lane = lanes.leave(lane, holder)
                self.slots.discard(holder)
        self.store(lane)
        assert not lanes.expired(self.lane, self.now)

    @rule(limit=st.integers(1, 4))
    def the_limit_changes(self, limit: int) -> None:
        if self.spec.limit is not None:
            self.spec = replace(self.spec, limit=limit)
            self.lane = lanes.under(self.lane, self.spec)

    @invariant()
    def slots_are_kept(self) -> None:
        assert set(self.lane.holders) == self.slots

    @invariant()
    def nobody_is_lost(self) -> None:
        assert self.lane.waiting == len(self.queue.keys() - self.lane.holders.keys())

    @invariant()
    def no_more_than_the_rate(self) -> None:
        rate = self.spec.rate
        if rate is None:
            return
        for first in range(len(self.grants)):
            allowed = rate.limit + (self.now - self.grants[first]) * rate.limit / rate.per
            assert len(self.grants) - first <= allowed + 1e-3

    @invariant()
    def somebody_will_look(self) -> None:
        assert self.lane.idle or self.lane.due_at is not None or lanes.rate_allows_at(self.lane, self.now) is None
        assert not self.lane.holders or self.lane.due_at is not None

    def teardown(self) -> None:
        """Everybody who waits gets a slot once others leave."""
        for _ in range(len(self.queue) * 2 + 50):
            for holder in list(self.lane.holders):
                self.queue.pop(holder, None)
                self.slots.discard(holder)
                self.store(lanes.leave(self.lane, holder))
            self.now += 60.0
            self.grant()
        assert not self.queue.keys() - self.lane.holders.keys()


TestLane = LaneMachine.TestCase


def served(spec: LaneSpec, tickets: list[tuple[str, int]]) -> list[str]:
    """Who is served in which order, one after another, once all have come; tickets are keys with priorities."""
    lane = lanes.enter(lanes.new_lane(spec, NOW), Ticket(holder="first", action="", arrived_at=NOW), NOW)
    assert isinstance(lane, Entered)
    lane, queue, order = lane.lane, dict[str, Ticket](), list[str]()
    for number, (key, priority) in enumerate(tickets):
        holder = f"{key}{number}"
        ticket = Ticket(holder=holder, action="", arrived_at=NOW, priority=priority, fairness_key=key)
        entered = lanes.enter(lane, ticket, NOW)
        assert isinstance(entered, Entered)
        assert entered.ticket is not None
        lane, queue[holder] = lanes.stamped(entered.lane, NOW, ""), entered.ticket
    holder = "first"
    while queue:
        places = sorted((Place(t.rank, t.holder) for t in queue.values()), key=lambda place: place.rank)
        lane, (holder,) = lanes.grant(lanes.leave(lane, holder), places, NOW)
        order.append(holder)
        del queue[holder]
    return order


def test_who_comes_first_is_served_first() -> None:
    assert served(LaneSpec(name="x", limit=1), [("a", 0), ("b", 0), ("c", 0)]) == ["a0", "b1", "c2"]


def test_in_a_lifo_lane_who_comes_last_is_served_first() -> None:
    assert served(LaneSpec(name="x", limit=1, order="lifo"), [("a", 0), ("b", 0), ("c", 0)]) == ["c2", "b1", "a0"]


def test_priority_comes_before_everything_else() -> None:
    spec = LaneSpec(name="x", limit=1, fair=True)
    assert served(spec, [("a", 0), ("b", -1), ("a", 5), ("c", 5)]) == ["c3", "a2", "a0", "b1"]


def test_one_key_with_many_tickets_does_not_hold_up_the_others() -> None:
    order = served(LaneSpec(name="x", limit=1, fair=True), [("a", 0)] * 50 + [("b", 0), ("b", 0), ("c", 0)])
    assert {"b50", "c52"} <= set(order[:3])
    assert "b51" in order[:5]


def test_more_keys_than_are_told_apart_are_all_served() -> None:
    keys = [(f"k{number}-", 0) for number in range(lanes.FAIR_KEYS * 2)] * 2
    order = served(LaneSpec(name="x", limit=1, fair=True), keys)
    assert len(order) == len(keys)
