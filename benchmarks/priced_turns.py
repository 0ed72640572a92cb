"""Whole turns of single runs, by what woke them, and what each may cost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from benchmarks.ledger import Budget, assert_completed, charge
from durable import App, Context, Signal
from durable.engine.worker import RemoteWorker
from durable.model.envelope import Wake
from durable.model.task import task_from
from durable.testing.counting import Counts

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.emulated import Emulated
    from benchmarks.ledger import Ledger

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


app = App("budget")
APPROVE = Signal("approve", str)


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
