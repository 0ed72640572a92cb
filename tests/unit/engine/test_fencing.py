"""A fence is the gap-free prefix of a lost turn's items, final once recorded, and forgotten when nobody can write above it."""

from __future__ import annotations

from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers, VirtualClock
from durable.engine.fencing import FENCES_KEPT, LONGEST_INVOCATION, fence, forget_old
from durable.model.entry import Entry
from durable.model.run import Run
from durable.ports import Acquired, Ports

BORN = 100


def world(clean_epoch: int, epoch: int, fences: dict[int, int] | None = None) -> tuple[Ports, Run]:
    clock = VirtualClock()
    runs = MemoryRunQueue(clock)
    store = MemoryStore()
    ports = Ports(store=store, runs=runs, timers=MemoryTimers(clock, str, runs), clock=clock, new_id=str)
    run = Run(
        id="r", workflow="w", version="1", status="suspended", created_at=clock.now(), epoch=epoch - 1, born=BORN,
        clean_epoch=clean_epoch, writer="w", fences=fences or {}, updated_at=clock.now(),
    )  # fmt: skip
    store.create(run)
    now = clock.now()
    got = store.acquire("r", owner="o", now=now, lease_until=now + 9, code_version="1", due_is_near=True)
    assert isinstance(got, Acquired)
    return ports, got.run


def item(epoch: int, n: int) -> Entry:
    return Entry(location=f"step-{epoch}-{n}", kind="step", epoch=epoch, n=n, at=0.0)


def test_what_follows_a_gap_does_not_count() -> None:
    ports, run = world(clean_epoch=101, epoch=103)
    assert fence(ports, run, [item(102, 1), item(102, 2), item(102, 4)]).fences == {102: 2}


def test_an_epoch_that_left_nothing_is_fenced_at_nothing() -> None:
    ports, run = world(clean_epoch=101, epoch=104)
    assert fence(ports, run, [item(103, 1)]).fences == {102: 0, 103: 1}


def test_a_fence_once_recorded_is_final() -> None:
    ports, run = world(clean_epoch=101, epoch=104, fences={102: 1})
    assert fence(ports, run, [item(102, 1), item(102, 2)]).fences[102] == 1


def test_old_fences_go_with_what_lies_above_them() -> None:
    old = {102 + i: 1 for i in range(FENCES_KEPT + 1)}
    ports, run = world(clean_epoch=200, epoch=201, fences=old)
    for entry in (item(102, 1), item(102, 2)):
        ports.store.put_entry("r", entry)
    assert forget_old(ports, run, [item(102, 1), item(102, 2)]).fences == old, "their owners may still write"
    ports.clock.sleep(LONGEST_INVOCATION)
    assert forget_old(ports, run, [item(102, 1), item(102, 2)]).fences == {}
    assert [entry.n for entry in ports.store.load("r").entries] == [1]
