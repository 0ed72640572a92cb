"""The requests of the ports, one by one, and what each may cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from benchmarks.ledger import Budget, charge
from durable.engine.maintenance import Maintenance
from durable.engine.retention import expire
from durable.model.entry import Entry
from durable.model.envelope import Start
from durable.model.message import StoredMessage
from durable.model.run import Cut, Run, Settlement, first_epoch
from durable.ports import Acquired

if TYPE_CHECKING:
    from benchmarks.emulated import Emulated
    from benchmarks.ledger import Ledger
    from durable.model.run import Status

STORE: Final = {
    "create": Budget(1, 3),
    "create, input stored apart": Budget(1, 6),
    "create, with an idempotency key": Budget(1, 6),
    "get": Budget(1, 0, 1),
    "acquire": Budget(1, 1),
    "acquire, due in hours": Budget(1, 3),
    "acquire, due in hours, not guessed": Budget(2, 4),
    "acquire, held": Budget(1, 1),
    "announce": Budget(1, 1),
    "record_fences": Budget(1, 1),
    "load, empty": Budget(1, 0, 1),
    "load, 10 entries of 400 bytes": Budget(1, 0, 2),
    "put_entry": Budget(1, 1),
    "put_entry, 40 KB of text": Budget(1, 1),
    "put_message": Budget(1, 1),
    "put_message, again": Budget(1, 1),
    "delete_messages, 1": Budget(1, 1),
    "delete_messages, 25": Budget(1, 25),
    "delete_entries, 2": Budget(2, 2),
    "settle, asleep": Budget(1, 3),
    "settle, nothing due": Budget(1, 2),
    "settle, completed": Budget(1, 3),
    "settle, failed": Budget(1, 4),
    "release": Budget(1, 3),
    # Whoever waits for it is told by a note in its record, which makes it due.
    "terminate": Budget(1, 4),
    "unblock": Budget(1, 3),
    "request_cancel, asleep": Budget(1, 3),
    "request_cancel, held": Budget(2, 2),
    "reopen, failed": Budget(1, 4),
    # A transaction costs twice: two records; and four rows of indexes.
    "continue_as_new": Budget(1, 8),
    "annotate": Budget(1, 2),
    "mark_pruned": Budget(1, 1),
    "record_floor": Budget(1, 1),
    "record_cut": Budget(1, 1),
    "record_cut, 5 tombstones": Budget(2, 12, 1),
    "keep_compensations, 10": Budget(1, 10),
    "bury, 5": Budget(1, 5),
    "buried, 5": Budget(1, 0, 5),
    "put_reply": Budget(1, 1),
    "get_reply": Budget(1, 0, 1),
    "put_state": Budget(1, 1),
    "get_state": Budget(1, 0, 1),
    "append_stream": Budget(1, 1),
    "read_stream, 10 chunks of 100 bytes": Budget(1, 0, 1),
    "blocked_runs": Budget(4, 0, 2),
    "settle, completed, kept for 30 days": Budget(1, 4),
    "expired_runs": Budget(4, 0, 2.5),
    "mark_for_deletion": Budget(1, 1),
    "postpone_deletion": Budget(1, 3),
    "empty_run, 2 items": Budget(3, 2, 2),
    "delete_run, 4 items": Budget(8, 7, 6),
    # Beside those: two looks, the mark, and a look for objects in the bucket, which is no request to DynamoDB.
    "a run is deleted whose retention is over": Budget(10, 6, 7),
    "a sweep of a system at rest": Budget(16, 0, 8),
    "list_runs, 50 of one workflow": Budget(4, 0, 4),
    "due_runs": Budget(4, 0, 2.5),
    "runs.send": Budget(1, 0),
    "timers.arm, in 10 minutes": Budget(1, 0),
    "timers.arm, in 3 days": Budget(1, 0),
}


def store_operations(world: Emulated, ledger: Ledger) -> None:
    """Every request of the ports, one by one."""
    runs = Fixtures(world)
    store, now = world.ports.store, world.clock.now()
    measure = ledger.measure
    measure("create", lambda: store.create(runs.record("created")))
    measure("create, input stored apart", lambda: store.create(runs.record("input", input_stored=True), input='"in"'))
    measure("create, with an idempotency key", lambda: store.create(runs.record("key"), idempotency_key="order-42"))
    measure("get", lambda: store.get("created"))

    mine: Run = measure("acquire", lambda: runs.acquire("created"))
    measure("acquire, held", lambda: store.acquire("created", owner="other", **runs.lease))
    measure("announce", lambda: store.announce("created", now=now))
    measure("record_fences", lambda: store.record_fences("created", epoch=mine.epoch, fences={1: 0}))
    later = {"due_at": now + 86_400}
    for run_id in ("far", "farther"):
        store.create(runs.record(run_id, **later))
    world.counter.take()
    measure("acquire, due in hours", lambda: runs.acquire("far", due_is_near=False))
    measure("acquire, due in hours, not guessed", lambda: runs.acquire("farther"))

    measure("load, empty", lambda: store.load("created"))
    entries = [runs.entry(mine, n) for n in range(1, 12)]
    measure("put_entry", lambda: store.put_entry("created", entries[0]))
    for entry in entries[1:10]:
        store.put_entry("created", entry)
    world.counter.take()
    measure("load, 10 entries of 400 bytes", lambda: store.load("created"))
    large = Entry(location="large", kind="step", epoch=mine.epoch, n=11, at=now, value=json.dumps("text " * 8_000))
    measure("put_entry, 40 KB of text", lambda: store.put_entry("created", large))
    measure("delete_entries, 2", lambda: store.delete_entries("created", ["s1", "s2"], epoch=mine.epoch))

    messages = [StoredMessage(id=f"m{n:02}", name="approve", body='"yes"', arrived_at=now) for n in range(26)]
    measure("put_message", lambda: store.put_message("created", messages[0]))
    measure("put_message, again", lambda: store.put_message("created", messages[0]))
    for message in messages[1:]:
        store.put_message("created", message)
    world.counter.take()
    measure("delete_messages, 1", lambda: store.delete_messages("created", ["m00"]))
    measure("delete_messages, 25", lambda: store.delete_messages("created", [it.id for it in messages[1:]]))

    endings: tuple[tuple[str, Status, float | None], ...] = (
        ("settle, asleep", "suspended", now + 600),
        ("settle, nothing due", "suspended", None),
        ("settle, completed", "completed", None),
        ("settle, failed", "failed", None),
    )
    for op, status, due_at in endings:
        run = runs.begun(op.replace(", ", "-"))
        settlement = Settlement(status=status, at=now, started_at=now, due_at=due_at)
        measure(
            op, lambda run=run, it=settlement: store.settle(run.id, epoch=run.epoch, wakes=run.wakes, settlement=it)
        )
    released = runs.begun("released")
    measure("release", lambda: store.release("released", epoch=released.epoch, now=now))
    runs.begun("terminated")
    measure("terminate", lambda: store.terminate("terminated", now=now, reason="asked to"))
    blocked = runs.begun("blocked")
    store.settle(
        "blocked", epoch=blocked.epoch, wakes=0, settlement=Settlement(status="blocked", at=now, started_at=now)
    )
    world.counter.take()
    measure("unblock", lambda: store.unblock("blocked", now=now))

    measure("list_runs, 50 of one workflow", lambda: store.list_runs("priced"))
    measure("due_runs", lambda: store.due_runs(before=now + 60, limit=100))
    measure("runs.send", lambda: world.ports.runs.send(Start(run_id="created", id="1")))
    measure("timers.arm, in 10 minutes", lambda: world.ports.timers.arm("created", now + 600))
    measure("timers.arm, in 3 days", lambda: world.ports.timers.arm("created", now + 3 * 86_400))


def ending_and_going_on(world: Emulated, ledger: Ledger) -> None:
    """Cancelling, reopening, continuing and deleting runs."""
    runs = Fixtures(world)
    store, now, measure = world.ports.store, world.clock.now(), ledger.measure

    def settled(run_id: str, status: Status, due_at: float | None = None) -> None:
        run = runs.begun(run_id)
        settlement = Settlement(status=status, at=now, started_at=now, due_at=due_at, code_version="1")
        store.settle(run_id, epoch=run.epoch, wakes=0, settlement=settlement)
        world.counter.take()

    settled("asleep", "suspended", now + 600)
    measure("request_cancel, asleep", lambda: store.request_cancel("asleep", mode="graceful", now=now))
    runs.begun("held")
    measure("request_cancel, held", lambda: store.request_cancel("held", mode="graceful", now=now))
    settled("mended", "failed")
    lease = {"owner": "mender", "now": now, "lease_until": now + 125}
    measure("reopen, failed", lambda: store.reopen("mended", **lease))
    paged = runs.begun("paged")
    settlement = Settlement(status="completed", at=now, started_at=now)
    successor = runs.record("paged~2", lineage="paged")
    measure(
        "continue_as_new",
        lambda: store.continue_as_new(
            "paged", epoch=paged.epoch, wakes=0, settlement=settlement, successor=successor, input=None
        ),
    )
    settled("stuck", "blocked")
    measure("blocked_runs", lambda: store.blocked_runs(not_under="2", limit=100))
    settled("kept", "completed", now + 30 * 86_400)
    run = runs.begun("kept-2")
    kept = Settlement(status="completed", at=now, started_at=now, due_at=now + 30 * 86_400)
    op = "settle, completed, kept for 30 days"
    measure(op, lambda: store.settle("kept-2", epoch=run.epoch, wakes=0, settlement=kept))
    measure("postpone_deletion", lambda: store.postpone_deletion("kept-2", epoch=run.epoch, until=now + 40 * 86_400))
    measure("expired_runs", lambda: store.expired_runs(before=now + 31 * 86_400, limit=100))
    measure("mark_for_deletion", lambda: store.mark_for_deletion("kept-2", epoch=run.epoch, now=now))
    for n in range(1, 3):
        store.put_entry("kept-2", runs.entry(paged, n))
    world.counter.take()
    measure("empty_run, 2 items", lambda: store.empty_run("kept-2"))
    settled("over", "completed", now - 1)
    for n in range(1, 3):
        store.put_entry("over", runs.entry(paged, n))
    world.counter.take()
    measure("a run is deleted whose retention is over", lambda: expire(world.ports, "over"))
    maintenance = Maintenance(world.ports, code_version="1")
    maintenance.sweep()
    world.counter.take()
    measure("a sweep of a system at rest", maintenance.sweep)
    settled("deleted", "completed", now + 1)
    for n in range(1, 3):
        store.put_entry("deleted", runs.entry(paged, n))
    store.put_reply("deleted", "m1", "done", expires_at=now)
    store.bury("deleted", ["m1"])
    world.counter.take()
    measure("delete_run, 4 items", lambda: store.delete_run("deleted"))


def pruning_and_publishing(world: Emulated, ledger: Ledger) -> None:
    """What runs leave of pruned entries, and what they show."""
    runs = Fixtures(world)
    store, now, measure = world.ports.store, world.clock.now(), ledger.measure
    run = runs.begun("pruning")
    epoch, ids = run.epoch, [f"m{n}" for n in range(5)]
    measure("annotate", lambda: store.annotate("pruning", epoch=epoch, tags=None, attributes={"cents": 300}))
    measure("mark_pruned", lambda: store.mark_pruned("pruning", epoch=epoch))
    measure("record_floor", lambda: store.record_floor("pruning", epoch=epoch, n=7))
    entries = [runs.entry(run, n) for n in range(1, 11)]
    measure("keep_compensations, 10", lambda: store.keep_compensations("pruning", entries))
    measure("bury, 5", lambda: store.bury("pruning", ids))
    measure("buried, 5", lambda: store.buried("pruning", ids))
    measure("record_cut", lambda: store.record_cut("pruning", epoch=epoch, cut=Cut(1, 1, 1), unburied=()))
    measure(
        "record_cut, 5 tombstones", lambda: store.record_cut("pruning", epoch=epoch, cut=Cut(2, 1, 2), unburied=ids)
    )
    measure("put_reply", lambda: store.put_reply("pruning", "m1", "done", expires_at=now))
    measure("get_reply", lambda: store.get_reply("pruning", "m1"))
    measure("put_state", lambda: store.put_state("pruning", "progress", "0.5", epoch=epoch))
    measure("get_state", lambda: store.get_state("pruning", "progress"))
    measure("append_stream", lambda: store.append_stream("pruning", "tokens", "00", "x" * 100))
    for n in range(1, 10):
        store.append_stream("pruning", "tokens", f"{n:02}", "x" * 100)
    world.counter.take()
    measure("read_stream, 10 chunks of 100 bytes", lambda: store.read_stream("pruning", "tokens"))


class Fixtures:
    """What the operations of the store are given."""

    def __init__(self, world: Emulated) -> None:
        self._world = world
        self._now = world.clock.now()
        self.lease: dict[str, Any] = {
            "now": self._now, "lease_until": self._now + 125, "code_version": "1", "due_is_near": True,
        }  # fmt: skip

    def record(self, run_id: str, **fields: Any) -> Run:
        """A run as the client makes it."""
        epoch = first_epoch(self._now)
        usual: dict[str, Any] = {
            "id": run_id, "workflow": "priced", "version": "1", "status": "pending", "created_at": self._now,
            "epoch": epoch, "born": epoch, "clean_epoch": epoch, "writer": f"{'w' * 20}{run_id}",
            "input": '{"order": "42"}', "input_digest": "d" * 16, "due_at": self._now + 30,
        }  # fmt: skip
        return Run(**(usual | fields))

    def acquire(self, run_id: str, **arguments: Any) -> Run:
        """Takes the lease."""
        answer = self._world.ports.store.acquire(run_id, owner=f"owner of {run_id}", **(self.lease | arguments))
        assert isinstance(answer, Acquired)
        return answer.run

    def begun(self, run_id: str) -> Run:
        """A run whose lease is held, uncounted."""
        self._world.ports.store.create(self.record(run_id))
        run = self.acquire(run_id)
        self._world.counter.take()
        return run

    def entry(self, run: Run, n: int) -> Entry:
        """A result of an ordinary size."""
        value = json.dumps(charge(n))
        return Entry(location=f"s{n}", kind="step", epoch=run.epoch, n=n, at=self._now, attempts=1, value=value)
