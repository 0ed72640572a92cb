"""A sweep is bounded in what it does and in its time, reaches everything in the end, and lets nobody's trouble be another's."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers, VirtualClock
from durable.engine.maintenance import RESERVE, Maintenance, Sweep
from durable.errors import StoreUnavailable
from durable.model.envelope import Wake, from_body
from durable.model.lane import Lane, LaneSpec
from durable.ports import Ports
from durable.testing.interception import intercepted
from tests.contract.builders import NOW, a_run, acquire, created, owned, settle


class Desk:
    def __init__(self) -> None:
        self.clock = VirtualClock(NOW)
        self.numbers = iter(range(10**9))
        self.store = MemoryStore()
        runs = MemoryRunQueue(self.clock)
        self.timers = MemoryTimers(self.clock, self.new_id, runs)
        self.ports = Ports(store=self.store, runs=runs, timers=self.timers, clock=self.clock, new_id=self.new_id)

    def new_id(self) -> str:
        return f"id-{next(self.numbers)}"

    def sweep(self, *, limit: int = 1_000, ports: Ports | None = None, **options: Any) -> Sweep:
        remaining: float = options.pop("remaining", 1e9)
        return Maintenance(ports or self.ports, code_version="v2", **options).sweep(limit=limit, remaining=remaining)

    def woken(self) -> list[str]:
        """Whom the timers queue wakes, which is empty afterwards."""
        found: list[str] = []
        while received := self.timers.receive():
            for message in received:
                envelope = from_body(message.body)
                assert isinstance(envelope, Wake)
                found.append(envelope.run_id)
                self.timers.acknowledge(message.receipt)
        return found

    def counting(self, calls: list[str], act: Callable[[str], None] = lambda _: None) -> Ports:
        def each(name: str, perform: Callable[[], Any]) -> Any:
            calls.append(name)
            act(name)
            return perform()

        return intercepted(self.ports, each)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def orphans(desk: Desk, count: int, **fields: Any) -> list[str]:
    ids = [f"run-{number:05}" for number in range(count)]
    for number, run_id in enumerate(ids):
        desk.store.create(a_run(run_id, due_at=NOW - 10_000 + number, **fields))
    return ids


@pytest.mark.parametrize("parallel", [1, 8])
def test_five_thousand_orphans_are_found_in_five_sweeps_a_thousand_each(desk: Desk, parallel: int) -> None:
    ids = orphans(desk, 5_000)
    found: list[str] = []
    for _ in range(5):
        swept = desk.sweep(parallel=parallel)
        woken = desk.woken()
        assert (swept.woken, len(woken)) == (1_000, 1_000)
        for run_id in woken:
            settle(desk.store, owned(desk.store, run_id), due_at=None)
        found += woken
    assert sorted(found) == ids
    assert desk.sweep() == Sweep(woken=0, unblocked=0)


def test_runs_that_nobody_takes_up_are_woken_again_and_no_more_than_the_limit(desk: Desk) -> None:
    ids = orphans(desk, 30)
    assert [desk.sweep(limit=10).woken for _ in range(3)] == [10, 10, 10]
    assert desk.woken() == ids[:10] * 3


def test_runs_at_work_hide_nobody(desk: Desk) -> None:
    for run_id in orphans(desk, 1_000):
        owned(desk.store, run_id, lease_until=NOW + 100)
    desk.store.create(a_run("orphan", due_at=NOW - 31))
    assert desk.sweep().woken == 1
    assert desk.woken() == ["orphan"]


def test_a_run_is_an_orphan_from_the_end_of_its_lease(desk: Desk) -> None:
    created(desk.store, due_at=NOW - 500)
    acquire(desk.store, lease_until=NOW + 10)
    assert desk.sweep().woken == 0
    desk.clock.advance(11)
    assert desk.sweep().woken == 1


@pytest.mark.parametrize("parallel", [1, 8])
def test_nothing_is_begun_in_the_last_seconds_of_an_invocation(desk: Desk, parallel: int) -> None:
    orphans(desk, 500)
    calls: list[str] = []
    slow = desk.counting(calls, lambda _: desk.clock.advance(1.0))
    swept = desk.sweep(ports=slow, remaining=55.0, parallel=parallel)
    assert 0 < swept.woken <= 25
    assert len(calls) <= 55 - RESERVE + 2 * parallel + 3
    assert desk.sweep().woken == 500


def test_trouble_with_one_run_or_one_kind_is_told_when_all_the_others_have_been_seen_to(desk: Desk) -> None:
    orphans(desk, 3)
    lane = Lane(spec=LaneSpec(name="queue:labels", limit=1), version=1, writer="w", due_at=NOW - 1, expires_at=NOW + 9)
    desk.store.write_lane(lane, expected_version=None)
    created(desk.store, "over")
    settle(desk.store, owned(desk.store, "over"), "completed", due_at=NOW - 1)
    failed: list[str] = []

    def fail(name: str) -> None:
        if name == "store.blocked_runs" or (name == "timers.send" and name not in failed):
            failed.append(name)
            raise StoreUnavailable(f"{name} was made to fail")

    with pytest.raises(StoreUnavailable, match=r"timers\.send was made to fail"):
        desk.sweep(ports=desk.counting([], fail))
    assert failed == ["timers.send", "store.blocked_runs"]
    pending = [from_body(message.body) for message in desk.timers.pending]
    assert [envelope.type for envelope in pending] == ["wake", "wake", "pump"]
    assert desk.store.get("over") is None


def test_a_sweep_of_a_system_at_rest_looks_and_does_nothing(desk: Desk) -> None:
    created(desk.store, "asleep", due_at=NOW + 9)
    created(desk.store, "ended")
    settle(desk.store, owned(desk.store, "ended"), "completed", due_at=NOW + 9)
    calls: list[str] = []
    assert desk.sweep(ports=desk.counting(calls)) == Sweep(woken=0, unblocked=0)
    assert calls == ["store.due_runs", "store.blocked_runs", "store.due_lanes", "store.expired_runs"]


def test_five_thousand_expired_runs_are_deleted_a_thousand_a_sweep(desk: Desk) -> None:
    for number in range(5_000):
        run_id = f"run-{number:05}"
        desk.store.create(replace(a_run(run_id, status="completed"), finished_at=NOW - 9, due_at=NOW - 1))
    assert [desk.sweep().deleted for _ in range(6)] == [1_000] * 5 + [0]
    assert desk.store.runs == []


def test_expired_runs_that_are_needed_do_not_stand_in_the_way_of_others(desk: Desk) -> None:
    created(desk.store, "mum", waiting_for=("child:kid",), due_at=None)
    for number in range(20):
        kid = a_run(f"kid-{number}", status="completed", parent="mum", parent_location="kid", due_at=NOW - 9)
        desk.store.create(kid)
    desk.store.create(a_run("free", status="completed", due_at=NOW - 1))
    assert [desk.sweep(limit=10).deleted for _ in range(3)] == [0, 0, 1]
    assert len(desk.store.runs) == 21
