"""Remote steps of several runs on queues with few slots, or with a rate."""

from __future__ import annotations

import asyncio
from random import Random  # noqa: TID251 - handed in, seeded
from typing import TYPE_CHECKING

from durable.context import Branch, Context
from durable.options import Call, Rate
from durable.testing.simulation.lane_watch import look_at_lanes
from durable.testing.simulation.quiet import check_all_ended, check_lane_free
from durable.testing.simulation.script import Act
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import app, effects
from durable.testing.simulation.workloads.remote import SOON, Done, Work, check_calls, perform
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload

if TYPE_CHECKING:
    from durable.client import Client
    from durable.testing.simulation.seams import PortCall
    from durable.testing.simulation.watch import Watch

SENT = "tasks of the queue with a rate, and when they were sent first"
RATE, PER = 2, 10.0
SKEW = 4.0
"""Two clocks are apart by this at most, in seconds."""

app.queue("narrow", concurrency=2)
app.queue("rated", rate=Rate(RATE, per=PER))


@app.remote_step(queue="narrow", retries=50)
def narrow(what: Work) -> Done:
    """At most two at a time, of all runs."""
    return perform(what)


@app.remote_step(queue="rated", retries=50)
def rated(what: Work) -> Done:
    """At most so many in a while."""
    return perform(what)


@app.workflow
async def limited(ctx: Context, patience: float) -> int:
    """Calls them side by side; one of them is not wanted any more after a while."""

    async def call(ctx: Context, name: str, what: Work) -> int:
        policy = Call(name, backoff=SOON, timeout=40, heartbeat=20, pickup_timeout=60)
        return (await ctx.call(policy, narrow, what)).attempt

    async def nap(ctx: Context) -> int:
        await ctx.sleep(patience)
        return 0

    async def perhaps() -> int:
        winner = await ctx.race("first", Branch("called", call, "perhaps", Work(8.0)), Branch("slept", nap))
        return winner.value

    async def thrice() -> None:
        for number in range(3):
            policy = Call(f"rated-{number}", backoff=SOON, timeout=40, pickup_timeout=60)
            await ctx.call(policy, rated, Work())

    await asyncio.gather(call(ctx, "one", Work(4.0)), call(ctx, "two", Work(1.0, fails=True)), perhaps(), thrice())
    return await call(ctx, "last", Work(1.0))


def plan(random: Random) -> Plan:
    """Three runs; one may be ended."""
    patience = random.choice([1.0, 12.0])
    acts = [
        Act(random.uniform(0, 10), "start", lambda client, name=name: _start(client, name, patience))
        for name in ("one", "two", "three")
    ]
    if random.random() < 0.5:
        acts.append(Act(random.uniform(5, 60), "end a run", random.choice([_cancel, _terminate])))
    return Plan(acts=acts)


def _start(client: Client, id: str, patience: float) -> None:
    client.start(limited, patience, id=id)


def _cancel(client: Client) -> None:
    client.cancel("two")


def _terminate(client: Client) -> None:
    client.terminate("two")


def look(watch: Watch, call: PortCall) -> None:
    """Slots in every moment; the rate is seen from when tasks are sent."""
    look_at_lanes(watch, call)
    if call.name == "steps.send" and call.args[0].queue == "rated":
        effects.notes.setdefault(SENT, {}).setdefault(call.args[0].holder, effects.now())


def check(ending: Ending) -> None:
    """Everybody had a turn, and nobody has or wants a slot any more."""
    watch = ending.watch
    check_all_ended(watch)
    check_lane_free(watch, "queue:narrow")
    check_lane_free(watch, "queue:rated")
    for run in watch.store.runs:
        check_calls(watch, run)
        if run.status not in {"completed", "cancelled"}:
            raise Violation(f"flow control: {run.id} has ended as {run.status}: {run.error or run.reason}")
    sent = sorted(effects.notes.get(SENT, {}).values())
    for first, moment in enumerate(sent):
        within = sum(moment <= other < moment + PER for other in sent[first:])
        if within > 2 * RATE + RATE * SKEW / PER and ending.fine:
            raise Violation(f"flow control: {within} tasks were sent within {PER:g} s")


LIMITED = Workload(name="limited", plan=plan, check=check, look=look, rate=0.5, pace=0.3)
