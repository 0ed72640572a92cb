"""Events: awaited by several runs, kept for those that come late, starting runs one by one and in batches."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random  # noqa: TID251 - handed in, seeded
from typing import TYPE_CHECKING, Any, Final

from durable import codec
from durable.channels import Event
from durable.context import Branch, Context
from durable.model.envelope import Publish
from durable.model.subscription import event_message_id, event_run_id
from durable.options import Batch
from durable.testing.simulation.script import Act
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import app, effects
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload

if TYPE_CHECKING:
    from durable.client import Client
    from durable.model.subscription import Subscription
    from durable.testing.simulation.seams import PortCall
    from durable.testing.simulation.watch import Watch

HAPPENED: Final = Event("happened", dict[str, int])
PLACED: Final = Event("placed", int)
KINDS: Final = (0, 0, 1, 2)
OWED = "who was listed when an event was accepted"
PUBLISHED = "events that were accepted"


@app.workflow
async def attentive(ctx: Context, patience: float) -> list[int]:
    """Waits for one event after the other, for two at once, and for one that it gives up."""
    found = [(await ctx.wait_for_event(HAPPENED, match={"kind": kind}))["number"] for kind in KINDS]

    async def event(ctx: Context) -> int:
        return (await ctx.wait_for_event(HAPPENED, match={"kind": 99}))["number"]

    async def nap(ctx: Context) -> int:
        await ctx.sleep(patience)
        return 0

    winner = await ctx.race("first", Branch("event", event), Branch("nap", nap))
    both = await asyncio.gather(
        ctx.wait_for_event(HAPPENED, match={"kind": 0}), ctx.wait_for_event(HAPPENED), return_exceptions=False
    )
    return [*found, winner.value, *(one["number"] for one in both)]


@app.workflow
async def one_each(ctx: Context, number: int) -> int:
    """Started by every event."""
    del ctx
    return number


@app.workflow
async def some_together(ctx: Context, numbers: list[int]) -> list[int]:
    """Started by some events together."""
    del ctx
    return numbers


app.on_event(PLACED, one_each)
app.on_event(PLACED, some_together, batch=Batch(2, window=20.0))


def plan(random: Random) -> Plan:
    """Two runs wait while events come, some of them kept; in the end events of every kind come until nobody waits."""
    patience = random.choice([1.0, 30.0])
    acts = [
        Act(random.uniform(0, 30), "start", lambda client, name=name: _start(client, name, patience))
        for name in ("one", "two")
    ]
    for number in range(random.randint(3, 7)):
        kept = random.choice([0.0, 0.0, 3600.0])
        kind = random.choice([*KINDS, 99])
        acts.append(Act(random.uniform(0, 60), "publish", _publishing(number, kind, kept)))
    acts += [
        Act(random.uniform(0, 60), "place", lambda client, n=number: _place(client, n))
        for number in range(random.randint(0, 4))
    ]
    if random.random() < 0.3:
        acts.append(Act(random.uniform(5, 60), "cancel", lambda client: client.cancel("two")))
    last = [Act(0.0, "look who still waits", check_nobody_waits_in_vain)]
    last += [
        Act(300.0 + 300.0 * place, "publish at last", _publishing(100 + place, kind, 0.0))
        for place, kind in enumerate([0, 0, 1, 2, 0, 0])
    ]
    return Plan(acts=acts, last=last)


def _start(client: Client, id: str, patience: float) -> None:
    client.start(attentive, patience, id=id)


def _publishing(number: int, kind: int, kept: float) -> Any:
    def publish(client: Client) -> None:
        client.publish_event(HAPPENED, {"kind": kind, "number": number}, id=f"e{number}", buffer=kept or None)

    return publish


def _place(client: Client, number: int) -> None:
    client.publish_event(PLACED, number, id=f"p{number}")


def look(watch: Watch, call: PortCall) -> None:
    """When an event is accepted, everybody who is listed then must get it, or an earlier one."""
    if call.name not in {"runs.send", "timers.send"} or not isinstance(call.args[0], Publish):
        return
    event = call.args[0]
    if event.cursor is not None or event.id in effects.notes.setdefault(PUBLISHED, {}):
        return
    effects.notes[PUBLISHED][event.id] = event
    payload = codec.decode(event.body, codec.UNTYPED)
    owed: set[tuple[str, str]] = effects.notes.setdefault(OWED, set())
    listed = watch.store.subscriptions(event.event, limit=1000).subscriptions
    owed |= {(one.run_id, one.location) for one in listed if one.awaited.fits(payload)}


def check_nobody_waits_in_vain(client: Client) -> None:
    """Once all is quiet: whoever was listed before an event that it waits for waits no more, nor for one that is kept."""
    store = client.ports.store
    for listed in store.subscriptions(HAPPENED.name, limit=1000).subscriptions:
        run = store.get(listed.run_id)
        if run is None or run.ended or f"event:{listed.location}" not in run.waiting_for:
            continue
        if (listed.run_id, listed.location) in effects.notes.get(OWED, ()):
            raise Violation(f"events: {listed.run_id} was listed before an event, and still waits at {listed.location}")
        _check_kept(client, listed)


def _check_kept(client: Client, listed: Subscription) -> None:
    store, now = client.ports.store, client.ports.clock.now()
    for kept in store.buffered(HAPPENED.name, now=now):
        if not listed.awaited.fits(codec.decode(kept.body, codec.UNTYPED)):
            continue
        heard = effects.notes["watch"].messages_to(listed.run_id).values()
        if not any(message.id.startswith(f"evt:{kept.id}:") for message in heard):
            raise Violation(f"events: {kept.id} is kept, and {listed.run_id} waits for such a one at {listed.location}")


def check(ending: Ending) -> None:
    """Each event is in one run, in one batch, and at one place of a run that waits for it."""
    watch = ending.watch
    for name in ("one", "two"):
        _check_attentive(watch, name)
    placed = sorted(event.id for event in effects.notes.get(PUBLISHED, {}).values() if event.event == PLACED.name)
    for event_id in placed:
        run = watch.store.get(event_run_id(event_id, "one_each"))
        if run is None or run.status != "completed":
            raise Violation(f"events: {event_id} has started no run, or one that does not end: {run}")
    batches = [watch.output_of(run) for run in watch.store.runs if run.workflow == "some_together" and run.ended]
    together = Counter(f"p{number}" for batch in batches for number in batch)
    if together != Counter(placed):
        raise Violation(f"events: {placed} were placed, and the batches are {batches}")


def _check_attentive(watch: Watch, name: str) -> None:
    run = watch.store.get(name)
    if run is None:
        raise Violation(f"events: {name} was never started")
    if run.status != "completed" and not (name == "two" and run.status == "cancelled"):
        raise Violation(f"events: {name} is {run.status} in the end, and waits for {run.waiting_for}: {run.reason}")
    had: Counter[str] = Counter()
    for entry in watch.lives[name].history().values():
        for message in entry.messages:
            if message.kind == "event":
                event_id = message.id.split(":")[1]
                if message.id != event_message_id(event_id, entry.location):
                    raise Violation(f"events: {entry.key} of {name} has {message.id}")
                had[event_id] += entry.location.partition("#")[2] not in {"5", "6"}  # these two wait side by side
    if twice := [event for event, times in had.items() if times > 1]:
        raise Violation(f"events: {name} has had {twice} at several places")


HAPPENINGS = Workload(name="happenings", plan=plan, check=check, look=look, rate=0.6, pace=0.3)
