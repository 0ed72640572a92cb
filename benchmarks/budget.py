"""Counts the AWS requests and DynamoDB units of each operation, indexes included, and fails where one costs more.

Prints one JSON line an operation. `units` are of a run without tags and parent, under a kilobyte.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moto import mock_aws

from benchmarks.emulated import Emulated
from durable import App, Context, Signal
from durable.engine.worker import RemoteWorker
from durable.model.entry import Entry
from durable.model.envelope import Start, Wake
from durable.model.message import StoredMessage
from durable.model.run import Cut, Run, Settlement, first_epoch
from durable.model.task import task_from
from durable.ports import Acquired
from durable.testing.counting import Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.model.run import Status


app = App("budget")
APPROVE = Signal("approve", str)


def charge(number: int) -> dict[str, object]:
    """A step of an ordinary size."""
    return {"payment": f"p-{number}", "cents": number, "note": "x" * 300}


@app.workflow
async def ten_steps_two_sleeps(ctx: Context) -> int:
    """The run that the design prices."""
    for number in range(4):
        await ctx.step(charge, number)
    await ctx.sleep("10m")
    for number in range(4, 8):
        await ctx.step(charge, number)
    await ctx.sleep("3 days")
    for number in range(8, 10):
        await ctx.step(charge, number)
    return 10


@app.workflow
async def approval(ctx: Context) -> str:
    """Two waits for a message."""
    first = await ctx.wait_for_signal(APPROVE, timeout="30 days")
    second = await ctx.wait_for_signal(APPROVE, timeout="30 days")
    return first + second


@dataclass(frozen=True, slots=True)
class Budget:
    """What an operation may cost."""

    requests: int
    write_units: int
    read_units: float = 0.0


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
    "terminate": Budget(1, 3),
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
    "delete_run, 4 items": Budget(8, 6, 4),
    "list_runs, 50 of one workflow": Budget(4, 0, 4),
    "due_runs": Budget(4, 0, 2.5),
    "runs.send": Budget(1, 0),
    "timers.arm, in 10 minutes": Budget(1, 0),
    "timers.arm, in 3 days": Budget(1, 0),
}

TURNS: Final = {
    "start": Budget(2, 3),
    "turn: first, 4 steps, sleep of 10 minutes": Budget(8, 8, 1),
    "turn: timer, sleep ended, 4 steps, sleep of 3 days": Budget(9, 9, 1),
    "turn: timer a minute early, forwarded": Budget(1, 0),
    "turn: timer, sleep ended, 2 steps, completed": Budget(6, 7, 1),
    "run: 10 steps, 2 sleeps": Budget(26, 27, 3),
    "send": Budget(2, 0, 1),
    # A run that is due in weeks is made due at the lease's end for the turn, and back: four index writes.
    "turn: a message, waiting for the next": Budget(5, 8, 1),
    # A wake says that the run is due about now; where that is wrong, one more acquire.
    "turn: an idle wake, deleting a consumed message": Budget(5, 8, 1),
    "turn: an idle wake": Budget(4, 7, 1),
    "turn: a message, completed": Budget(5, 8, 1),
    # Beside the three of every turn: the open entry, a look at the run, the task, the timer of its first possible end.
    "turn: first, a remote step dispatched": Budget(7, 5, 2),
    "worker: a task picked up, its result sent": Budget(2, 1),
    "turn: a result, completed": Budget(5, 6, 1),
    # Entry, look, task and pickup, result: the calls of a turn share the look.
    "turn: first, 3 remote steps dispatched": Budget(11, 7, 2),
    "turn: an attempt is overdue, and is made again": Budget(11, 7, 4),
}


@app.remote_step
def charge_elsewhere(number: int) -> dict[str, object]:
    """The same step, performed by a worker."""
    return charge(number)


@app.workflow
async def one_call(ctx: Context) -> str:
    """A remote step."""
    return str((await ctx.call(charge_elsewhere, 1))["payment"])


@app.workflow
async def three_calls(ctx: Context) -> str:
    """Three of them side by side."""
    return str(len(await asyncio.gather(*(ctx.call(charge_elsewhere, n) for n in range(3)))))


class Ledger:
    """Prints what operations cost and remembers which cost too much."""

    def __init__(self, world: Emulated, budgets: dict[str, Budget]) -> None:
        self._world = world
        self._budgets = budgets
        self.over: list[str] = []
        world.counter.take()

    def measure(self, op: str, perform: Callable[[], Any]) -> Any:
        """Performs and enters the costs."""
        self._world.counter.take()
        answer = perform()
        self.enter(op, self._world.counter.take())
        return answer

    def enter(self, op: str, counts: Counts) -> None:
        """Enters costs that were counted elsewhere."""
        budget = self._budgets[op]
        spent = Budget(counts.total, counts.write_units, counts.read_units)
        over = (
            spent.requests > budget.requests
            or spent.write_units > budget.write_units
            or spent.read_units > budget.read_units
        )
        line = {
            "op": op,
            "requests": spent.requests,
            "write_units": spent.write_units,
            "index_units": counts.index_units,
            "read_units": spent.read_units,
            "budget": [budget.requests, budget.write_units, budget.read_units],
        }
        print(json.dumps(line | ({"over": dict(counts.requests)} if over else {})))
        if over:
            self.over.append(op)


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
    settled("deleted", "completed")
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


def turns(world: Emulated, ledger: Ledger) -> None:
    """Whole turns of the engine, by what woke them."""
    client, counter, measure = world.client, world.counter, ledger.measure
    whole = Counts()

    def part(op: str, perform: Callable[[], Any]) -> None:
        counter.take()
        perform()
        counts = counter.take()
        whole.add(counts)
        ledger.enter(op, counts)

    part("start", lambda: client.start(ten_steps_two_sleeps, id="ten-steps"))
    part("turn: first, 4 steps, sleep of 10 minutes", world.settle_down)
    part("turn: timer, sleep ended, 4 steps, sleep of 3 days", world.skip)
    part("turn: timer a minute early, forwarded", world.skip)
    part("turn: timer, sleep ended, 2 steps, completed", world.skip)
    ledger.enter("run: 10 steps, 2 sleeps", whole)
    assert_completed(world, "ten-steps")

    client.start(approval, id="approval")
    world.settle_down()
    measure("send", lambda: client.send("approval", APPROVE, "yes"))
    measure("turn: a message, waiting for the next", world.settle_down)
    world.ports.runs.send(Wake(run_id="approval", id="wake-1", reason="budget"))
    measure("turn: an idle wake, deleting a consumed message", world.settle_down)
    world.ports.runs.send(Wake(run_id="approval", id="wake-2", reason="budget"))
    measure("turn: an idle wake", world.settle_down)
    client.send("approval", APPROVE, "yes")
    measure("turn: a message, completed", world.settle_down)
    assert_completed(world, "approval")


def remote_steps(world: Emulated, ledger: Ledger) -> None:
    """Calls of remote steps, from the turn that makes them to the one that has the result."""
    client, measure = world.client, ledger.measure
    client.start(one_call, id="call")
    measure("turn: first, a remote step dispatched", world.settle_down)
    (task,) = world.receive_tasks()
    worker = RemoteWorker(app, world.ports)
    measure("worker: a task picked up, its result sent", lambda: worker.process([task]))
    measure("turn: a result, completed", world.settle_down)
    assert_completed(world, "call")

    client.start(three_calls, id="calls")
    measure("turn: first, 3 remote steps dispatched", world.settle_down)
    worker.process(world.receive_tasks())
    world.settle_down()
    assert_completed(world, "calls")
    while world.skip():  # timers of what has ended
        pass

    client.start(one_call, id="lost")
    world.settle_down()
    (task,) = world.receive_tasks()
    world.ports.store.start_task("lost", task_from(task.body).id, worker="w", now=world.clock.now(), expires_at=2e9)
    world.counter.take()
    measure("turn: an attempt is overdue, and is made again", world.skip)
    worker.process(world.receive_tasks())
    world.settle_down()
    assert_completed(world, "lost")


def assert_completed(world: Emulated, run_id: str) -> None:
    """Costs mean something only if the work was done."""
    with world.counter.paused():
        run = world.ports.store.get(run_id)
    if run is None or run.status != "completed":
        raise AssertionError(f"{run_id} is not completed: {run}")


MEASURED: Final[Sequence[tuple[Callable[[Emulated, Ledger], None], dict[str, Budget]]]] = (
    (store_operations, STORE),
    (ending_and_going_on, STORE),
    (pruning_and_publishing, STORE),
    (turns, TURNS),
    (remote_steps, TURNS),
)


def main() -> int:
    """Measures everything; 1 if something is over its budget."""
    over: list[str] = []
    with mock_aws():
        for measured, budgets in MEASURED:
            world = Emulated(app, stack=measured.__name__.replace("_", "-"))
            ledger = Ledger(world, budgets)
            measured(world, ledger)
            over += ledger.over
    if over:
        print(f"over budget: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
