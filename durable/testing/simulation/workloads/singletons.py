"""Runs that exclude one another by a key of their input."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random  # noqa: TID251 - handed in, seeded
from typing import TYPE_CHECKING

from durable.context import Context
from durable.definitions import Singleton
from durable.testing.simulation.lane_watch import look_at_lanes
from durable.testing.simulation.quiet import check_all_ended, check_lanes_free
from durable.testing.simulation.script import Act
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.children import check_told
from durable.testing.simulation.workloads.effects import GO, app, effects, make, quick
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload

if TYPE_CHECKING:
    from durable.client import Client
    from durable.testing.simulation.seams import PortCall
    from durable.testing.simulation.watch import Watch

ACTIVE = "runs that have begun"


@dataclass(frozen=True, slots=True)
class Job:
    """What a run excludes others from, and how long it takes."""

    key: str
    pause: float
    goes_on: int = 0
    """How often it continues as another run."""


@app.workflow(singleton=Singleton(key="key"))
async def alone(ctx: Context, job: Job) -> str:
    """Alone with its key from its first step to its last."""
    await ctx.step(quick("enter"), make, [])
    await ctx.mailbox.next(GO, timeout=job.pause, default=None)
    await ctx.step(quick("work"), make, [])
    if job.goes_on:
        await ctx.continue_as_new(alone, Job(job.key, job.pause, job.goes_on - 1))
    await ctx.step(quick("leave"), make, [])
    return job.key


@app.workflow
async def two_of_a_kind(ctx: Context) -> list[str]:
    """Starts some as children, who wait for one another."""
    first = await ctx.start_child(alone, Job("a", 3.0))
    return [await ctx.child(alone, Job("a", 1.0)), await first.result()]


def plan(random: Random) -> Plan:
    """Clients start some, a run starts others; one is ended before or while it runs."""
    acts: list[Act] = []
    for number, key in enumerate("aaab"):
        job = Job(key, random.choice([2.0, 10.0]), random.choice([0, 0, 1]))
        acts.append(
            Act(random.uniform(0, 20), f"start {number}", lambda client, n=number, job=job: _start(client, n, job))
        )
    acts.append(Act(random.uniform(0, 20), "start a parent", _start_parent))
    if random.random() < 0.5:
        how = random.choice(["cancel", "terminate"])
        acts.append(Act(random.uniform(3, 40), f"{how} 1", lambda client: getattr(client, how)("alone-1")))
    return Plan(acts=acts)


def _start(client: Client, number: int, job: Job) -> None:
    client.start(alone, job, id=f"alone-{number}")


def _start_parent(client: Client) -> None:
    client.start(two_of_a_kind, id="parent")


def look(watch: Watch, call: PortCall) -> None:
    """Besides the slots: of those that have begun and not ended there is one for each key."""
    look_at_lanes(watch, call)
    if call.name != "store.put_entry":
        return
    begun: dict[str, set[str]] = effects.notes.setdefault(ACTIVE, {})
    run = watch.store.get(call.args[0])
    if run is None or run.lane is None or run.ended or call.args[1].epoch != run.epoch:
        return
    active = begun.setdefault(run.lane, set())
    active.add(run.lineage or run.id)
    still = {lineage for lineage in active if not watch.last_of(lineage).ended}
    begun[run.lane] = still
    if len(still) > 1:
        raise Violation(f"singletons: {sorted(still)} are active side by side in {run.lane}")


def check(ending: Ending) -> None:
    """Everybody had a turn."""
    watch = ending.watch
    check_all_ended(watch)
    check_lanes_free(watch)
    for run in watch.store.runs:
        check_told(watch, run)
        lineage = run.lineage or run.id
        if run.status != "completed" and not (lineage == "alone-1" and run.status == "cancelled"):
            raise Violation(f"singletons: {run.id} has ended as {run.status}: {run.error or run.reason}")


SINGLETONS = Workload(name="singletons", plan=plan, check=check, look=look, rate=0.6, pace=0.3)
