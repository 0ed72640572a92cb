"""Runs that message one another, that begin with a message, and that go on as others while somebody waits for their end."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - handed in, seeded
from typing import TYPE_CHECKING

from durable.channels import Signal
from durable.context import Context
from durable.errors import RunNotFound
from durable.testing.simulation.quiet import check_all_ended
from durable.testing.simulation.script import Act
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.children import Kid, check_started, check_told, kid
from durable.testing.simulation.workloads.effects import app, make, quick
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload

if TYPE_CHECKING:
    from durable.client import Client

NOTE = Signal("note", str)
CHAPTERS = 3
CLOSE = "close"
"""The last note of the listener's."""


@dataclass(frozen=True, slots=True)
class Story:
    """What one run of a lineage passes on to the next."""

    chapter: int = 0
    heard: list[str] = field(default_factory=list[str])


@app.workflow
async def listener(ctx: Context) -> list[str]:
    """Begins with its first note, and hears all of them up to the last."""
    heard: list[str] = []
    while not heard or heard[-1] != CLOSE:
        heard.append(await ctx.wait_for_signal(NOTE))
        await ctx.step(quick(f"note-{len(heard)}"), make, [])
    return heard


@app.workflow
async def story(ctx: Context, so_far: Story) -> list[str]:
    """Has a child in each chapter, tells the listener, and goes on as another run."""
    end = await ctx.child(kid, Kid("well", 2.0))
    await ctx.mailbox.send("listener", NOTE, f"chapter {so_far.chapter}")
    heard = [*so_far.heard, f"{so_far.chapter} {end}"]
    if so_far.chapter + 1 < CHAPTERS:
        await ctx.continue_as_new(story, Story(so_far.chapter + 1, heard))
    return heard


@app.workflow
async def reader(ctx: Context) -> list[str]:
    """Waits for a story to its end, with others."""
    return await ctx.child(story, Story(), id="story", parent_close="abandon")


def plan(random: Random) -> Plan:
    """Two readers of one story; a listener that several start by messaging it."""
    acts = [
        Act(random.uniform(0, 30), "read", lambda client, name=name: _read(client, name)) for name in ("one", "two")
    ]
    acts += [
        Act(random.uniform(0, 40), "note", lambda client, n=number: _note(client, f"note {n}", f"n{n}"))
        for number in range(random.randint(1, 4))
    ]
    if random.random() < 0.3:
        acts.append(Act(random.uniform(2, 40), "cancel", lambda client: client.cancel("two")))
    return Plan(acts=acts, last=[Act(0.0, "close", lambda client: _note(client, CLOSE, "last"))])


def _read(client: Client, name: str) -> None:
    """Once there is a listener: what is sent to a run that does not exist is nobody's."""
    if client.ports.store.get("listener") is None:
        _note(client, f"{name} reads", name)
        raise RunNotFound("listener")
    client.start(reader, id=name)


def _note(client: Client, text: str, id: str) -> None:
    client.start_with_message(listener, None, NOTE, text, id="listener", message_id=id)


def check(ending: Ending) -> None:
    """Every note was heard once; every reader knows the end of the story."""
    watch = ending.watch
    check_all_ended(watch)
    for run in watch.store.runs:
        check_told(watch, run)
        check_started(watch, run)
        if run.status != "completed" and not (run.id == "two" and run.status == "cancelled"):
            raise Violation(f"relays: {run.id} has ended as {run.status}: {run.error or run.reason}")
    heard: list[str] = watch.output_of(watch.lives["listener"].run)
    notes = [message.body for message in watch.messages_to("listener").values() if message.kind == "signal"]
    if len(heard) != len(set(heard)) or len(heard) != len(notes):
        raise Violation(f"relays: the listener has heard {heard}, of {notes}")
    if missing := {f"chapter {n}" for n in range(CHAPTERS)} - set(heard):
        raise Violation(f"relays: the listener has not heard {missing}")
    expected = [f"{n} well" for n in range(CHAPTERS)]
    for name in ("one", "two"):
        run = watch.store.get(name)
        if run is not None and run.status == "completed" and watch.output_of(run) != expected:
            raise Violation(f"relays: {name} knows the story as {watch.output_of(run)}")


RELAYS = Workload(name="relays", plan=plan, check=check, rate=0.6, pace=0.3)
