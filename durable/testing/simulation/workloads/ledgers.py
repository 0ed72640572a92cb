"""Entities: several callers at once; each operation once, in one order that every answer agrees with."""

from __future__ import annotations

from random import Random  # noqa: TID251 - handed in, seeded
from typing import TYPE_CHECKING

from pydantic import BaseModel

from durable.context import Context
from durable.errors import EntityFailed
from durable.testing.simulation.script import Act
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import app, effects, quick
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from durable.client import Client

KEY = "main"
ANSWERS = "what clients were answered, by what they have asked for"


def noted(tag: str) -> str:
    """A step of an operation."""
    effects.happen()
    return tag


@app.entity
class Ledger(BaseModel):
    """Remembers in which order it was written to."""

    lines: list[str] = []

    def add(self, tag: str) -> int:
        """The number of the new line."""
        self.lines.append(tag)
        return len(self.lines)

    def draw(self, tag: str) -> int:
        """Another number at every execution: what was answered must be what is kept."""
        drawn = effects.notes["drawn"] = effects.notes.get("drawn", 0) + 1
        self.lines.append(f"{tag}={drawn}")
        return drawn

    async def add_slowly(self, ctx: Context, tag: str) -> int:
        """The same, after a step and a nap."""
        self.lines.append(await ctx.step(quick("note"), noted, tag))
        await ctx.sleep(3)
        return len(self.lines)

    def refuse(self, tag: str) -> int:
        """Fails, after it has changed something."""
        self.lines.append(tag)
        raise ValueError(tag)


@app.workflow
async def clerk(ctx: Context, name: str) -> list[int]:
    """Asks one after the other; the answers are line numbers, -1 for a refusal."""
    ledger = ctx.entity(Ledger, KEY)
    answers = [await ledger.call(Ledger.add, f"{name}-1")]
    await ledger.signal(Ledger.add, f"{name}-2")
    try:
        answers.append(await ledger.call(Ledger.refuse, f"{name}-refused"))
    except EntityFailed:
        answers.append(-1)
    answers.append(await ledger.call(Ledger.add_slowly, f"{name}-3"))
    answers.append(await ledger.call(Ledger.add, f"{name}-4"))
    return answers


def plan(random: Random) -> Plan:
    """Two runs and some clients ask the same entity."""
    acts = [
        Act(random.uniform(0, 15), "start a clerk", lambda client, name=name: _start(client, name))
        for name in ("one", "two")
    ]
    for number in range(random.randint(2, 5)):
        method = random.choice([Ledger.add, Ledger.draw, Ledger.draw, Ledger.refuse])
        acts.append(Act(random.uniform(0, 40), f"ask {number}", _asking(method, f"client-{number}")))
    if random.random() < 0.3:
        acts.append(Act(random.uniform(5, 30), "cancel", lambda client: client.cancel("two")))
    return Plan(acts=acts, last=[Act(0.0, "look at the ledger", _look)])


def _start(client: Client, name: str) -> None:
    client.start(clerk, name, id=name)


def _asking(method: Callable[[Ledger, str], int], tag: str) -> Callable[[Client], None]:
    def ask(client: Client) -> None:
        try:
            answer = client.entity(Ledger, KEY, timeout=8, id=tag).call(method, tag)
        except EntityFailed:
            answer = -1
        effects.notes.setdefault(ANSWERS, {})[tag] = answer

    return ask


def _look(client: Client) -> None:
    effects.notes["lines"] = client.entity(Ledger, KEY).state().lines


def check(ending: Ending) -> None:
    """Every line is there once, no refused one is, and every answer is the number of its line."""
    watch = ending.watch
    lines: list[str] = effects.notes["lines"]
    if len(lines) != len(set(lines)) or any("refused" in line for line in lines):
        raise Violation(f"entities: the ledger says {lines}")
    for tag, answer in effects.notes.get(ANSWERS, {}).items():
        _check_answer(tag, answer, lines)
    for name in ("one", "two"):
        run = watch.store.get(name)
        if run is None or (run.status != "completed" and not (name == "two" and run.status == "cancelled")):
            raise Violation(f"entities: {name} does not come to its end: {run and run.status} {run and run.reason}")
        if run.status != "completed":
            continue
        first, refused, third, fourth = watch.output_of(run)
        for tag, answer in (
            (f"{name}-1", first),
            (f"{name}-refused", refused),
            (f"{name}-3", third),
            (f"{name}-4", fourth),
        ):
            _check_answer(tag, answer, lines)
        if [line for line in lines if line.startswith(name) and line != f"{name}-2"] != [
            f"{name}-{n}" for n in (1, 3, 4)
        ]:
            raise Violation(f"entities: {name} has asked in order, and the ledger says {lines}")
        if f"{name}-2" not in lines:
            raise Violation(f"entities: the signal of {name} has vanished")


def _check_answer(tag: str, answer: int, lines: list[str]) -> None:
    expected = next((int(line.partition("=")[2]) for line in lines if line.startswith(f"{tag}=")), -1)
    if tag in lines:
        expected = lines.index(tag) + 1
    if answer != expected:
        raise Violation(f"entities: {tag} was answered {answer}, and the ledger says {lines}")


LEDGERS = Workload(name="ledgers", plan=plan, check=check, rate=0.5, pace=0.3)
