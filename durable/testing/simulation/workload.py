"""What the simulated run does: steps that prove what they were based on, waits with and without deadlines, sleeps, siblings."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from durable.app import App
from durable.channels import Signal
from durable.context import Context
from durable.errors import StepInterrupted
from durable.options import Backoff, Step
from durable.step_context import step_context

GO = Signal("go", int)
DONE = Signal("done", int)
OTHER_RUN = "other"
"""Hears from the run; it need not exist to have a mailbox."""


@dataclass(frozen=True, slots=True)
class Made:
    """A step's result: a number that no other execution has, and the numbers of all results before it."""

    number: int
    basis: list[int]


class Effects:
    """The world outside: remembers every execution of a step's body."""

    def __init__(self) -> None:
        self.executions: Counter[str] = Counter()

    def happen(self, location: str) -> int:
        """The number of this execution, counted over all steps."""
        self.executions[location] += 1
        return self.executions.total()

    def forget(self) -> None:
        """Starts over for another seed."""
        self.executions.clear()


effects = Effects()
"""Steps are module-level functions, so that their types are read once and not for every seed."""

app = App("simulation")


class Flaky(Exception):
    """A step's first attempt fails with it."""


def make(basis: list[int]) -> Made:
    """The body of most steps."""
    return Made(effects.happen(step_context().location), basis)


def make_at_second_attempt(basis: list[int]) -> Made:
    """Fails once."""
    made = make(basis)
    if step_context().attempt == 1:
        raise Flaky
    return made


class Chain:
    """The numbers so far; every result must have been based on exactly these."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def add(self, *results: Made) -> None:
        """Takes results that were asked for at the same time."""
        for made in results:
            if made.basis != self.numbers:
                raise AssertionError(f"a result was based on {made.basis}, the history says {self.numbers}")
        self.numbers += [made.number for made in results]


RETRIED = Step("flaky", timeout=5, retries=50, backoff=Backoff(2.0, factor=1))
"""Many retries: an attempt whose invocation dies counts."""

CAREFUL = Step("careful", timeout=5, at_most_once=True, retries=0)


def quick(name: str) -> Step:
    """A step that fits into the short invocations of the simulation."""
    return Step(name, timeout=5, retries=50)


@app.workflow
async def chain(ctx: Context) -> list[int]:
    """Mixes every kind of operation; the output tells which messages and results it saw."""
    so_far = Chain()
    heard: list[int] = []

    async def hear(timeout: float | None) -> None:
        if timeout is None:
            heard.append((await ctx.mailbox.next(GO)).body)
            return
        message = await ctx.mailbox.next(GO, timeout=timeout, default=None)
        heard.append(0 if message is None else message.body)

    so_far.add(await ctx.step(quick("first"), make, [*so_far.numbers]))
    await hear(15)
    so_far.add(await ctx.step(quick("second"), make, [*so_far.numbers]))
    await hear(None)
    so_far.add(  # named so that other entries lie between them in the order of keys: a loader may see one without the other
        *await asyncio.gather(
            ctx.step(quick("a-left"), make, [*so_far.numbers]),
            ctx.step(quick("z-right"), make, [*so_far.numbers]),
        )
    )
    await ctx.sleep(7)
    so_far.add(await ctx.step(RETRIED, make_at_second_attempt, [*so_far.numbers]))
    await hear(10)
    with suppress(StepInterrupted):
        so_far.add(await ctx.step(CAREFUL, make, [*so_far.numbers]))
    await ctx.mailbox.send(OTHER_RUN, DONE, len(so_far.numbers))
    so_far.add(await ctx.step(quick("last"), make, [*so_far.numbers]))
    return so_far.numbers + heard
