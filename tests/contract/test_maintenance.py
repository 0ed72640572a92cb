"""Maintenance reaches every run in the end, however many there are."""

from durable.adapters.memory import VirtualClock
from durable.engine.maintenance import Maintenance
from durable.model.envelope import Envelope, Wake
from durable.ports import Ports, RunQueue, Store
from tests.contract.builders import NOW, created, owned, settle


class Recorded:
    """Timers that only remember whom they should wake."""

    def __init__(self) -> None:
        self.woken: list[str] = []

    def send(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        assert (isinstance(envelope, Wake), delay) == (True, 0.0)
        self.woken.append(envelope.run_id)

    def arm(self, run_id: str, due_at: float) -> None:
        raise AssertionError(f"{run_id} is not to be armed for {due_at}")


class NoQueue:
    def send(self, envelope: Envelope) -> None:
        raise AssertionError(f"{envelope} holds up its own group")


def swept(store: Store, code_version: str) -> list[str]:
    timers = Recorded()
    queue: RunQueue = NoQueue()
    ports = Ports(store=store, runs=queue, timers=timers, clock=VirtualClock(NOW), new_id=lambda: "id")
    sweep = Maintenance(ports, code_version=code_version).sweep(limit=100)
    assert sweep.woken + sweep.unblocked == len(timers.woken)
    return timers.woken


def blocked(store: Store, numbers: range, code_version: str) -> list[str]:
    ids = [f"run-{number:03}" for number in numbers]
    for number, run_id in zip(numbers, ids, strict=True):
        facts = {"status": "blocked", "code_version": code_version, "due_at": None}
        created(store, run_id, created_at=NOW + number, **facts)
    return ids


def test_a_hundred_and_fifty_blocked_runs_do_not_starve_each_other(store: Store) -> None:
    ids = blocked(store, range(150), "v1")
    first = swept(store, "v2")
    assert first == ids[:100]
    for run_id in first[:50]:
        settle(store, owned(store, run_id, code_version="v2"), "suspended")
    for run_id in first[50:]:
        settle(store, owned(store, run_id, code_version="v2"), "blocked", code_version="v2")
    assert swept(store, "v2") == ids[100:]


def test_runs_that_the_new_code_blocks_again_do_not_hide_those_that_it_has_not_tried(store: Store) -> None:
    untried = blocked(store, range(30), "v1")
    blocked(store, range(30, 150), "v2")
    assert swept(store, "v2") == untried
    assert swept(store, "v2") == untried


def test_overdue_runs_are_woken(store: Store) -> None:
    created(store, "overdue", due_at=NOW - 31)
    created(store, "fresh", due_at=NOW - 29)
    assert swept(store, "v1") == ["overdue"]
