"""Lanes are changed by one writer at a time, all or nothing, and leave nothing behind."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Any

import pytest

from durable import lanes as work
from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers, VirtualClock
from durable.errors import LimitExceeded
from durable.lanes import Granted, Waiting
from durable.lanes.holders import start_action
from durable.model import lane_changes as lanes
from durable.model.lane import HOLDERS, Entered, Lane, LaneRate, LaneSpec, LaneState, Place, Ticket
from durable.ports import Ports, Store
from tests.contract.builders import NOW, created

SPEC = LaneSpec(name="queue:labels", limit=2, max_queue=9)


def a_ticket(holder: str = "run-1|print:1:1", **fields: Any) -> Ticket:
    return Ticket(**{"holder": holder, "action": '{"start": "ü"}', "arrived_at": NOW, **fields})


def stamped(lane: Lane, writer: str) -> Lane:
    return lanes.stamped(lane, NOW, writer)


def entered(lane: Lane, holder: str, **fields: Any) -> tuple[Lane, list[Ticket]]:
    answer = lanes.enter(lane, a_ticket(holder, **fields), NOW)
    assert isinstance(answer, Entered)
    return stamped(answer.lane, f"writer of {holder}"), [] if answer.ticket is None else [answer.ticket]


def a_lane_with(store: Store, *holders: str, spec: LaneSpec = SPEC) -> tuple[Lane, dict[str, Ticket]]:
    """Everybody comes in, one after another; the tickets are of those that wait."""
    lane, expected = lanes.new_lane(spec, NOW), None
    tickets: dict[str, Ticket] = {}
    for holder in holders:
        lane, put = entered(lane, holder)
        assert store.write_lane(lane, expected_version=expected, put=put)
        expected = lane.version
        tickets |= {ticket.holder: ticket for ticket in put}
    return lane, tickets


def test_a_lane_that_nobody_uses_is_not_there(store: Store) -> None:
    assert store.read_lane(SPEC.name, tickets=0) is None
    assert store.read_lane(SPEC.name, tickets=5) is None
    assert store.find_ticket(SPEC.name, "anybody") is None


def test_a_lane_comes_back_as_it_was_written(store: Store) -> None:
    spec = replace(SPEC, rate=LaneRate(3, 1.5), order="lifo", fair=True)
    lane, _ = a_lane_with(store, "run-ä|print:1:1", "run-2|a/b[1]:1:1", "run-3|c:1:1", spec=spec)
    lane = replace(lane, armed=NOW + 0.1, tokens=0.30000000000000004, version=lane.version + 1, writer="w")
    assert store.write_lane(lane, expected_version=lane.version - 1)
    assert store.read_lane(spec.name, tickets=0) == LaneState(lane, [])


def test_tickets_are_read_in_the_order_of_their_ranks(store: Store) -> None:
    lane, tickets = a_lane_with(store, *(f"run-{number}" for number in range(7)))
    state = store.read_lane(SPEC.name, tickets=3)
    assert state == LaneState(lane, [Place(tickets[f"run-{it}"].rank, f"run-{it}") for it in (2, 3, 4)])
    assert store.find_ticket(SPEC.name, "run-5") == tickets["run-5"]
    whole = store.read_lane(SPEC.name, tickets=100)
    assert whole is not None
    assert len(whole.places) == 5


def test_only_one_of_two_writers_of_a_version_succeeds(store: Store) -> None:
    lane, _ = a_lane_with(store, "run-1")
    ours, _ = entered(lane, "run-2")
    theirs, _ = entered(lane, "run-3")
    assert store.write_lane(theirs, expected_version=lane.version)
    assert not store.write_lane(ours, expected_version=lane.version)
    assert store.read_lane(SPEC.name, tickets=0) == LaneState(theirs, [])


def test_a_lane_is_made_once(store: Store) -> None:
    fresh = lanes.new_lane(SPEC, NOW)
    ours, _ = entered(fresh, "run-1")
    theirs, _ = entered(fresh, "run-2")
    assert store.write_lane(theirs, expected_version=None)
    assert not store.write_lane(ours, expected_version=None)


def test_nothing_is_put_in_where_the_version_has_moved(store: Store) -> None:
    lane, _ = a_lane_with(store, "run-1", "run-2")
    ours, put = entered(lane, "run-3")
    theirs = stamped(lanes.leave(lane, "run-1"), "other")
    assert store.write_lane(theirs, expected_version=lane.version)
    assert not store.write_lane(ours, expected_version=lane.version, put=put)
    assert store.find_ticket(SPEC.name, "run-3") is None
    assert store.read_lane(SPEC.name, tickets=9) == LaneState(theirs, [])


def test_a_write_that_is_repeated_after_its_reply_was_lost_has_succeeded(store: Store) -> None:
    lane, _ = a_lane_with(store, "run-1", "run-2")
    queued, put = entered(lane, "run-3")
    for _ in range(2):
        assert store.write_lane(queued, expected_version=lane.version, put=put)
    gone = stamped(lanes.leave(queued, "run-1"), "leaves")
    for _ in range(2):
        assert store.write_lane(gone, expected_version=queued.version)


def test_a_deletion_that_is_repeated_after_its_reply_was_lost_has_succeeded(store: Store) -> None:
    lane, _ = a_lane_with(store, "run-1")
    empty = stamped(lanes.leave(lane, "run-1"), "leaves")
    for _ in range(2):
        assert store.write_lane(empty, expected_version=lane.version)


def test_a_holder_waits_in_one_place_only(store: Store) -> None:
    lane, tickets = a_lane_with(store, "run-1", "run-2", "run-3")
    again, put = entered(lane, "run-3")
    again = replace(again, writer="another")
    assert not store.write_lane(again, expected_version=lane.version, put=put)
    assert store.read_lane(SPEC.name, tickets=9) == LaneState(lane, [Place(tickets["run-3"].rank, "run-3")])


def test_tickets_go_with_the_write_that_removes_them(store: Store) -> None:
    lane, tickets = a_lane_with(store, "run-1", "run-2", "run-3", "run-4")
    left = stamped(lanes.leave_queue(lane), "leaves")
    assert store.write_lane(left, expected_version=lane.version, remove=[tickets["run-3"]])
    assert store.read_lane(SPEC.name, tickets=9) == LaneState(left, [Place(tickets["run-4"].rank, "run-4")])
    assert store.find_ticket(SPEC.name, "run-3") is None


def test_an_empty_lane_leaves_nothing_behind(store: Store) -> None:
    lane, tickets = a_lane_with(store, "run-1", "run-2", "run-3")
    emptied = replace(lane, holders={}, waiting=0)
    assert store.write_lane(stamped(emptied, "l"), expected_version=lane.version, remove=[tickets["run-3"]])
    assert store.read_lane(SPEC.name, tickets=9) is None
    assert store.find_ticket(SPEC.name, "run-3") is None
    assert store.due_lanes(before=NOW * 2, limit=10) == []


def test_a_lane_whose_rate_is_spent_is_remembered_until_it_is_not(store: Store) -> None:
    spec = LaneSpec(name="queue:mail", rate=LaneRate(10, 60.0))
    lane, _ = a_lane_with(store, "run-1", spec=spec)
    assert (lane.idle, lane.expires_at, lane.due_at) == (True, pytest.approx(NOW + 6), None)
    assert store.read_lane(spec.name, tickets=0) == LaneState(lane, [])


def test_lanes_that_are_due_are_found_and_are_no_runs(store: Store) -> None:
    created(store, "run-1", due_at=NOW)
    for number, name in enumerate(("late", "later", "latest")):
        spec = replace(SPEC, name=f"queue:{name}")
        lane, _ = entered(lanes.new_lane(spec, NOW), f"run-{number}")
        lane = replace(lane, due_at=NOW - number)
        assert store.write_lane(lane, expected_version=None)
    assert store.due_lanes(before=NOW, limit=10) == ["queue:latest", "queue:later", "queue:late"]
    assert store.due_lanes(before=NOW - 1, limit=1) == ["queue:latest"]
    assert store.due_runs(before=NOW, limit=10) == ["run-1"]


def test_a_thousand_holders_fit(store: Store) -> None:
    spec = replace(SPEC, limit=HOLDERS)
    lane = lanes.new_lane(spec, NOW)
    for number in range(HOLDERS):
        lane, put = entered(lane, f"order-{number:04}|a-step-with-a-name:{number}:1")
        assert not put
    assert store.write_lane(lane, expected_version=None)
    assert store.read_lane(spec.name, tickets=0) == LaneState(lane, [])
    assert entered(lane, "one more")[1]


def test_a_ticket_that_would_not_fit_is_refused(store: Store) -> None:
    lane, _ = a_lane_with(store, "run-1", "run-2")
    noise = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(400_000))
    queued, put = entered(lane, "run-3", action=noise)
    with pytest.raises(LimitExceeded):
        store.write_lane(queued, expected_version=lane.version, put=put)
    assert store.read_lane(SPEC.name, tickets=9) == LaneState(lane, [])


# Many at once


class CountingStore(MemoryStore):
    """Notices a lane with more holders than slots at the moment it is written."""

    def write_lane(self, lane: Lane, **arguments: Any) -> bool:
        assert len(lane.holders) <= (SPEC.limit or 0)
        return super().write_lane(lane, **arguments)


class Steps:
    def send(self, task: Any, *, delay: float = 0.0) -> None:
        raise AssertionError("nobody asked for it")


def in_threads(work_of_one: Callable[[int], None], workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work_of_one, range(workers)))


def test_many_at_once_never_hold_more_slots_than_there_are() -> None:
    clock, lock, numbers = VirtualClock(NOW), Lock(), iter(range(10**6))

    def new_id() -> str:
        with lock:
            return f"id-{next(numbers)}"

    runs = MemoryRunQueue(clock)
    store = CountingStore()
    ports = Ports(
        store=store, runs=runs, timers=MemoryTimers(clock, new_id, runs), clock=clock, new_id=new_id, steps=Steps()
    )
    spec, inside, seen = replace(SPEC, max_queue=None), set[str](), list[int]()
    for number in range(8):
        created(store, f"run-{number}")

    def one(number: int) -> None:
        for attempt in range(25):
            holder = f"run-{number}|step:{attempt}:1"
            ticket = a_ticket(holder, action=start_action(holder))
            while isinstance(work.enter(ports, spec, ticket), Waiting):
                if work.holds(ports, spec.name, holder):
                    break
                work.pump(ports, spec.name)
            with lock:
                inside.add(holder)
                seen.append(len(inside))
            with lock:
                inside.remove(holder)
            work.leave(ports, spec.name, holder)
            work.leave(ports, spec.name, holder)

    in_threads(one, 8)
    assert max(seen) <= 2
    assert store.read_lane(spec.name, tickets=1) is None
    assert isinstance(work.enter(ports, spec, a_ticket("run-1|last:1:1")), Granted)
