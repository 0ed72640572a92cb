"""Families: runs that start others, wait for them together, lose interest in them, and end before them or are ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random  # noqa: TID251 - handed in, seeded

from durable.channels import Signal
from durable.client import Client
from durable.context import Branch, Context
from durable.engine.children import end_message_id
from durable.errors import ChildFailed, NonRetryableError
from durable.model.ending import ended_from
from durable.model.run import Run, Watcher
from durable.ops.child import child_start_from
from durable.testing.simulation.quiet import check_all_ended
from durable.testing.simulation.script import Act
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.watch import Watch
from durable.testing.simulation.workloads.effects import GO, app, make, quick
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload

NEVER = Signal("never", int)
SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Kid:
    """What a child does."""

    ends: str
    """`well`, `badly`, `told` (by a message) or `never`."""
    pause: float = 0.0
    nested: bool = False
    """Whether it has a child too, which never ends by itself."""


@dataclass(frozen=True, slots=True)
class Family:
    """What a parent does."""

    pause: float
    shares: bool = True


@app.workflow
async def kid(ctx: Context, spec: Kid) -> str:
    """Ends as it is told."""
    if spec.nested:
        await ctx.start_child(kid, Kid("never"))
    await ctx.step(quick("first"), make, [])
    if spec.pause:
        await ctx.sleep(spec.pause)
    match spec.ends:
        case "badly":
            raise NonRetryableError("a bad end")
        case "told":
            return f"told {await ctx.wait_for_signal(GO)}"
        case "never":
            await ctx.wait_for_signal(NEVER)
        case _:
            pass
    await ctx.step(quick("last"), make, [])
    return "well"


@app.workflow
async def family(ctx: Context, plan: Family) -> list[str]:
    """Has children of every kind; tells how those ended that it has waited for."""

    async def end_of(ctx: Context, spec: Kid, name: str) -> str:
        try:
            return await ctx.child(kid, spec, id=name)
        except ChildFailed as error:
            return error.status

    me = ctx.run.id
    abandoned = await ctx.start_child(kid, Kid("well", 30.0), id=f"{me}-abandoned", parent_close="abandon")
    await ctx.start_child(kid, Kid("never", nested=True), id=f"{me}-left")
    told = [
        *await asyncio.gather(
            end_of(ctx, Kid("well"), f"{me}-well"),
            end_of(ctx, Kid("badly", 2.0), f"{me}-badly"),
            return_exceptions=False,
        )
    ]
    winner = await ctx.race(
        "first",
        Branch("never", end_of, Kid("never"), f"{me}-loser"),
        Branch("well", end_of, Kid("well", 4.0), f"{me}-winner"),
    )
    told.append(winner.value)
    if plan.shares:
        told.append(await end_of(ctx, Kid("told"), SHARED))
    await ctx.sleep(plan.pause)
    told.append(await abandoned.result())
    return told


def plan(random: Random) -> Plan:
    """Two families with a child in common; one of them, or that child, may be ended from outside."""
    one, two = Family(random.choice([1.0, 80.0])), Family(random.choice([1.0, 80.0]))
    acts = [
        Act(random.uniform(0, 5), "start a family", lambda client: _start(client, "one", one)),
        Act(random.uniform(0, 40), "start a family", lambda client: _start(client, "two", two)),
        Act(random.uniform(10, 90), "tell the child", _tell),
    ]
    if random.random() < 0.5:
        whom, how = random.choice(["one", "two", SHARED]), random.choice(["graceful", "graceful", "terminate"])
        acts.append(Act(random.uniform(5, 60), f"{how} end of {whom}", lambda client: _end(client, whom, how)))
    return Plan(acts=acts, last=[Act(0.0, "tell the child at last", lambda client: _tell(client, at_last=True))])


def _start(client: Client, id: str, spec: Family) -> None:
    client.start(family, spec, id=id)


def _tell(client: Client, *, at_last: bool = False) -> None:
    if at_last and client.ports.store.get(SHARED) is None:
        return
    client.send(SHARED, GO, 7, id="at-last" if at_last else "go")


def _end(client: Client, run_id: str, how: str) -> None:
    if how == "terminate":
        client.terminate(run_id)
    else:
        client.cancel(run_id)


def check(ending: Ending) -> None:
    """Everybody has ended as it should, and has been told of by name to everybody who waits."""
    watch = ending.watch
    check_all_ended(watch)
    for run in watch.store.runs:
        check_told(watch, run)
        check_started(watch, run)
        name = run.id.rpartition("-")[2]
        if name == "abandoned" and run.status != "completed":
            raise Violation(f"children: {run.id} was abandoned and has ended as {run.status}")
    for name in ("one", "two"):
        _check_family(watch, watch.store.get(name))


def _check_family(watch: Watch, run: Run | None) -> None:
    if run is None or run.status == "cancelled":
        return
    if run.status != "completed":
        raise Violation(f"children: {run.id} has ended as {run.status}: {run.error or run.reason}")
    shared = watch.last_of(SHARED)
    expected = [
        "well",
        "failed",
        "well",
        watch.output_of(shared) if shared.status == "completed" else shared.status,
        "well",
    ]
    if watch.output_of(run) != expected:
        raise Violation(f"children: {run.id} was told {watch.output_of(run)}, and {expected} is what happened")


def check_told(watch: Watch, child: Run) -> None:
    """Every end of a child reaches whoever waits for it, once."""
    watchers = list(watch.store.watchers(child.lineage or child.id))
    if child.successor is not None:
        return
    if child.parent is not None and child.parent_location is not None:
        watchers.append(Watcher(child.parent, child.parent_location))
    for watcher in set(watchers):
        heard = watch.messages_to(watcher.run_id).values()
        told = [message for message in heard if message.kind == "child" and message.name == watcher.location]
        ends = {message.id for message in told if ended_from(message.body).run_id == child.id}
        if ends != {end_message_id(child, watcher.location)}:
            raise Violation(f"children: {watcher} has heard of {child.id}: {ends or 'nothing'}")


def check_started(watch: Watch, run: Run) -> None:
    """What a run has recorded that it starts exists, unless the run was ended just then."""
    if run.status == "cancelled":
        return
    for entry in watch.lives[run.id].history().values():
        if entry.kind not in {"child", "start"} or entry.value is None or (entry.kind == "child" and not entry.mark):
            continue
        start = child_start_from(entry.value)
        if watch.store.get(start.id) is None:
            raise Violation(f"children: {run.id} has recorded that it starts {start.id}, which does not exist")


CHILDREN = Workload(name="children", plan=plan, check=check, rate=0.4, pace=0.3)
