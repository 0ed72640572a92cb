"""What runs do with others, and what each may cost: children, lanes, events, outside systems, entities."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from benchmarks.ledger import Budget, assert_completed
from durable import App, Context, Event, Signal, StateKey, step_context
from durable.engine.worker import RemoteWorker
from durable.model.entity import Caller, EntityCall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.emulated import Emulated
    from benchmarks.ledger import Ledger

FAMILIES: Final = {
    # Beside the three of every turn: the open entry, a look at the run, the child and its start.
    "turn: first, a child started": Budget(7, 7, 2),
    # The note that this is owed comes with the settle, and goes by a write of its own.
    "turn: first, a child ended, its parent told": Budget(5, 5, 1),
    "turn: the end of a child, completed": Budget(5, 7, 1),
    "turn: first, a run that exists watched": Budget(8, 7, 2),
    "turn: a message, ended, its watcher told": Budget(8, 10, 2),
    "turn: the end of a watched run, completed": Budget(5, 7, 1),
    "turn: first, start_child": Budget(7, 7, 2),
    "turn: a message, handle.cancel": Budget(10, 9, 3),
    "turn: cancelled, its parent told": Budget(6, 8, 1),
    "turn: a message, continued as new": Budget(8, 13, 2),
    "turn: first of a successor": Budget(3, 3, 1),
    "start_with_message": Budget(2, 0, 1),
    "turn: a message that starts its run, completed": Budget(7, 10, 1),
    "start_with_message, the run exists": Budget(2, 0, 1),
    "turn: such a message, completed": Budget(5, 7, 1),
    "turn: first, a call in a lane, granted": Budget(9, 7, 3),
    # A ticket is two items, written with the lane in one transaction, which costs twice.
    "turn: first, a call in a lane, waiting": Budget(8, 11, 3),
    # The grant, three looks whether its holder still wants it, its task, and the note that it was told.
    "worker: a task of a lane, its result sent, the next let in": Budget(9, 12, 4),
    "turn: a result of a lane, completed": Budget(6, 6, 2),
    "worker: a task of a lane, its result sent, nobody waits": Budget(4, 3, 1),
    "turn: first, an event awaited": Budget(7, 5, 3),
    "publish_event": Budget(1, 0),
    "event: given to 1 run": Budget(4, 1, 2),
    "turn: an event, completed": Budget(7, 8, 2),
    # Each: a look at its record, a note, a send.
    "event: given to 10 runs": Budget(31, 10, 11),
    "event: kept, nobody waits": Budget(2, 1, 1),
    "event: a run started": Budget(3, 3, 1),
    "turn: first, a callback submitted": Budget(5, 5, 1),
    "complete_callback": Budget(2, 0, 1),
    "turn: a callback, completed": Budget(5, 8, 1),
    "turn: first, the address of a webhook published": Budget(4, 4, 1),
    "call_webhook": Budget(2, 0, 1),
    "turn: a call of a webhook, completed": Budget(5, 7, 1),
    "entity: a call sent": Budget(2, 0, 1),
    "turn: an entity, its first call answered to a client": Budget(10, 11, 2),
    "entity: an answer read": Budget(1, 0, 1),
    # Four of them delete what the call before has left, and one looks for repeated calls: its history keeps its size.
    "turn: an entity, the next call answered to a client": Budget(13, 12, 3),
    "turn: first, an entity asked": Budget(6, 4, 2),
    "turn: an entity, the next call answered to a run": Budget(13, 11, 3),
    "turn: an answer of an entity, completed": Budget(5, 7, 1),
}

app = App("families")
GO = Signal("go", int)
HAPPENED = Event("happened", dict[str, int])
PLACED = Event("placed", int)
ADDRESS = StateKey("address", str)
TOKENS: dict[str, str] = {}
app.queue("narrow", concurrency=1)


@app.workflow
async def waits(ctx: Context) -> int:
    """A run that others end."""
    return await ctx.wait_for_signal(GO)


@app.workflow
async def echo(ctx: Context, n: int) -> int:  # noqa: ARG001 - as every workflow
    """The least that a run can do."""
    return n


@app.workflow
async def parent(ctx: Context) -> int:
    """Waits for a child of its own."""
    return await ctx.child(echo, 1)


@app.workflow
async def watcher(ctx: Context) -> int:
    """Waits for a run that somebody else has started."""
    return await ctx.child(waits, id="watched")


@app.workflow
async def steers(ctx: Context) -> int:
    """Starts a child, and has it end."""
    handle = await ctx.start_child(waits)
    await ctx.wait_for_signal(GO)
    await handle.cancel()
    return await ctx.wait_for_signal(GO)


@app.workflow
async def counts_down(ctx: Context, n: int) -> int:
    """Goes on in another run."""
    await ctx.wait_for_signal(GO)
    if n:
        await ctx.continue_as_new(counts_down, n - 1)
    return n


@app.remote_step(queue="narrow")
def narrow(n: int) -> int:
    """One at a time."""
    return n


@app.workflow
async def queues(ctx: Context) -> int:
    """A call that needs a slot."""
    return await ctx.call(narrow, 1)


@app.workflow
async def until_it_happens(ctx: Context) -> int:
    """Waits for an event."""
    return (await ctx.wait_for_event(HAPPENED))["v"]


def submit(token: str) -> None:
    """Tells an outside system."""
    TOKENS[step_context().run_id] = token


@app.workflow
async def pays(ctx: Context) -> int:
    """Waits for an outside system to answer."""
    return await ctx.callback("pay", submit, int, timeout="1 day")


@app.workflow
async def is_called(ctx: Context) -> int:
    """Waits for an outside system to call."""
    hook = ctx.webhook("provider")
    ctx.set_state(ADDRESS, hook.url)
    return await hook.wait(int)


@app.entity
class Counter(BaseModel):
    """The least that an entity can be."""

    value: int = 0

    def add(self, n: int) -> int:
        """Changes it."""
        self.value += n
        return self.value


@app.workflow
async def asks(ctx: Context) -> int:
    """Waits for an entity."""
    return await ctx.entity(Counter, "k").call(Counter.add, 1)


app.on_event(PLACED, echo)


class Turns:
    """Handles one batch of deliveries after the other, and names what each has cost."""

    def __init__(self, world: Emulated, ledger: Ledger) -> None:
        self._world = world
        self._ledger = ledger

    def next(self, op: str) -> None:
        """The next batch, which must be there."""
        if not self._ledger.measure(op, self._world.deliver):
            raise AssertionError(f"nothing to deliver: {op}")

    def pass_over(self) -> None:
        """All that is due now, unnamed."""
        self._world.settle_down()


def children(world: Emulated, ledger: Ledger) -> None:
    """Runs that start and end others, and runs that go on as others."""
    client, turns = world.client, Turns(world, ledger)
    client.start(parent, id="parent")
    turns.next("turn: first, a child started")
    turns.next("turn: first, a child ended, its parent told")
    turns.next("turn: the end of a child, completed")
    assert_completed(world, "parent")

    client.start(waits, id="watched")
    turns.pass_over()
    client.start(watcher, id="watcher")
    turns.next("turn: first, a run that exists watched")
    client.send("watched", GO, 1)
    turns.next("turn: a message, ended, its watcher told")
    turns.next("turn: the end of a watched run, completed")
    assert_completed(world, "watcher")

    client.start(steers, id="steers")
    turns.next("turn: first, start_child")
    turns.pass_over()
    client.send("steers", GO, 1)
    turns.next("turn: a message, handle.cancel")
    turns.next("turn: cancelled, its parent told")
    turns.pass_over()
    client.send("steers", GO, 1)
    turns.pass_over()
    assert_completed(world, "steers")

    client.start(counts_down, 1, id="first")
    turns.pass_over()
    client.send("first", GO, 1)
    turns.next("turn: a message, continued as new")
    turns.next("turn: first of a successor")


def messages_that_start(world: Emulated, ledger: Ledger) -> None:
    """Start with a message."""
    client, turns = world.client, Turns(world, ledger)
    ledger.measure("start_with_message", lambda: client.start_with_message(counts_down, 0, GO, 1, id="new"))
    turns.next("turn: a message that starts its run, completed")
    assert_completed(world, "new")
    client.start(counts_down, 0, id="known")
    turns.pass_over()
    ledger.measure(
        "start_with_message, the run exists", lambda: client.start_with_message(counts_down, 0, GO, 1, id="known")
    )
    turns.next("turn: such a message, completed")
    assert_completed(world, "known")


def lanes(world: Emulated, ledger: Ledger) -> None:
    """Remote steps that take turns."""
    client, turns = world.client, Turns(world, ledger)
    worker = RemoteWorker(app, world.ports)
    for run_id, op in (("a", "granted"), ("b", "waiting")):
        client.start(queues, id=run_id)
        turns.next(f"turn: first, a call in a lane, {op}")
    ledger.measure(
        "worker: a task of a lane, its result sent, the next let in", lambda: worker.process(world.receive_tasks())
    )
    turns.next("turn: a result of a lane, completed")
    ledger.measure(
        "worker: a task of a lane, its result sent, nobody waits", lambda: worker.process(world.receive_tasks())
    )
    turns.pass_over()
    assert_completed(world, "a")
    assert_completed(world, "b")


def events(world: Emulated, ledger: Ledger) -> None:
    """Events, by who waits."""
    client, turns = world.client, Turns(world, ledger)
    client.start(until_it_happens, id="e")
    turns.next("turn: first, an event awaited")
    ledger.measure("publish_event", lambda: client.publish_event(HAPPENED, {"v": 1}))
    turns.next("event: given to 1 run")
    turns.next("turn: an event, completed")
    assert_completed(world, "e")
    for n in range(10):
        client.start(until_it_happens, id=f"e-{n}")
    turns.pass_over()
    client.publish_event(HAPPENED, {"v": 1})
    turns.next("event: given to 10 runs")
    turns.pass_over()
    client.publish_event(HAPPENED, {"v": 1}, buffer="1h")
    turns.next("event: kept, nobody waits")
    client.publish_event(PLACED, 1)
    turns.next("event: a run started")
    turns.pass_over()


def outside_systems(world: Emulated, ledger: Ledger) -> None:
    """Callbacks and webhooks."""
    client, turns = world.client, Turns(world, ledger)
    client.start(pays, id="pays")
    turns.next("turn: first, a callback submitted")
    ledger.measure("complete_callback", lambda: client.complete_callback(TOKENS["pays"], 1))
    turns.next("turn: a callback, completed")
    assert_completed(world, "pays")
    client.start(is_called, id="called")
    turns.next("turn: first, the address of a webhook published")
    url = client.get_state("called", ADDRESS) or ""
    ledger.measure("call_webhook", lambda: client.call_webhook(url.rpartition("/")[2], 1))
    turns.next("turn: a call of a webhook, completed")
    assert_completed(world, "called")


def entities(world: Emulated, ledger: Ledger) -> None:
    """Entities, asked by clients and by runs."""
    client, turns = world.client, Turns(world, ledger)
    ref: Any = client.entity(Counter, "k")
    definition = ref._definition  # noqa: SLF001 - the only way to what the reference was made of
    operation = definition.operation(Counter.add)

    def ask() -> tuple[str, str]:
        call = EntityCall(operation=operation.name, arguments=operation.arguments((1,), {}), caller=Caller())
        return client.ask(definition, "k", call, None)

    for op in ("its first", "the next", "the next"):
        run_id, message_id = ledger.measure("entity: a call sent", ask)
        turns.next(f"turn: an entity, {op} call answered to a client")
        ledger.measure("entity: an answer read", partial(client.answer, run_id, message_id, None))
    client.start(asks, id="asks")
    turns.next("turn: first, an entity asked")
    turns.next("turn: an entity, the next call answered to a run")
    turns.next("turn: an answer of an entity, completed")
    assert_completed(world, "asks")


MEASURED: Final[Sequence[Callable[[Emulated, Ledger], None]]] = (
    children, messages_that_start, lanes, events, outside_systems, entities,
)  # fmt: skip
