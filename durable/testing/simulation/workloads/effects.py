"""The world outside of simulated runs, and steps that prove what they were based on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import Any

from durable.app import App
from durable.channels import Signal
from durable.context import Context
from durable.errors import NonRetryableError
from durable.model.task import StepTask
from durable.options import Backoff, Step
from durable.step_context import step_context

RUN_ID = "run"
GO = Signal("go", int)
MANY_RETRIES = 50
"""An attempt whose invocation dies counts."""

app = App("simulation")


@dataclass(frozen=True, slots=True)
class Made:
    """A step's result: a number that no other execution has, and the numbers of all results before it."""

    number: int
    basis: list[int]


class Effects:
    """The world outside: remembers every execution of a step's body, and of an undo."""

    def __init__(self) -> None:
        self.executions: Counter[str] = Counter()
        self.undone: list[int] = []
        """Numbers of results, in the order in which they were undone; some more than once."""
        self.sleep: Callable[[float], None] = _no_clock
        """Lets others go on while a body takes so many seconds."""
        self.now: Callable[[], float] = float
        self.performing: list[StepTask] = []
        """Tasks of remote steps whose bodies are being run."""
        self.bodies: Counter[str] = Counter()
        """How often the body of each attempt at a remote step was begun."""
        self.notes: dict[str, Any] = {}
        """What a workload remembers of this seed."""
        self._served = local()
        """What time it is, for those whose clock is right."""

    def happen(self) -> int:
        """The number of this execution, counted over all steps."""
        context = step_context()
        self.executions[context.location if context.run_id == RUN_ID else f"{context.run_id}:{context.location}"] += 1
        return self.executions.total()

    def forget(self, sleep: Callable[[float], None], now: Callable[[], float]) -> None:
        """Starts over for another seed."""
        self.sleep, self.now = sleep, now
        self.executions.clear()
        self.undone.clear()
        self.performing.clear()
        self.bodies.clear()
        self.notes.clear()

    def serve(self, task: StepTask) -> None:
        """The worker in this thread has got a task."""
        self._served.task = task

    @contextmanager
    def body(self) -> Generator[StepTask]:
        """While the body of a remote step is run; gives its task."""
        task: StepTask = self._served.task
        self.performing.append(task)
        try:
            yield task
        finally:
            self.performing.remove(task)


def _no_clock(seconds: float) -> None:
    raise AssertionError(f"nobody lets {seconds} s pass")


effects = Effects()
"""Steps are module-level functions, so that their types are read once and not for every seed."""


class Flaky(Exception):
    """A first attempt fails with it."""


class Chain:
    """The numbers so far; every result must have been based on exactly these."""

    def __init__(self, numbers: list[int] | None = None) -> None:
        self.numbers = list(numbers or ())

    def add(self, *results: Made) -> None:
        """Takes results that were asked for at the same time."""
        for made in results:
            if made.basis != self.numbers:
                raise AssertionError(f"a result was based on {made.basis}, the history says {self.numbers}")
        self.numbers += [made.number for made in results]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a loop or a continuation passes on."""

    turn: int = 0
    numbers: list[int] = field(default_factory=list[int])
    heard: list[int] = field(default_factory=list[int])


def quick(name: str, *, ephemeral: bool = False) -> Step:
    """A step that fits into the short invocations of the simulation."""
    return Step(name, timeout=5, retries=MANY_RETRIES, ephemeral=ephemeral)


def impatient(name: str) -> Step:
    """A step that is tried again soon."""
    return Step(name, timeout=5, retries=MANY_RETRIES, backoff=Backoff(2.0, factor=1))


def make(basis: list[int]) -> Made:
    """The body of most steps."""
    return Made(effects.happen(), basis)


def make_at_second_attempt(basis: list[int]) -> Made:
    """Fails once."""
    made = make(basis)
    if step_context().attempt == 1:
        raise Flaky
    return made


def unmake(made: Made, basis: list[int]) -> None:
    """Undoes what a step has made."""
    if made.basis != basis:
        raise NonRetryableError(f"a step that was based on {made.basis} is undone with {basis}")
    effects.undone.append(made.number)


def unmake_at_second_attempt(made: Made, basis: list[int]) -> None:
    """Fails once."""
    if step_context().attempt == 1:
        raise Flaky
    unmake(made, basis)


async def hear_perhaps(ctx: Context, so_far: Chain, heard: list[int]) -> None:
    """Whether the run waits here depends on what the last step gave: a lost turn and its successor may differ in it."""
    if so_far.numbers[-1] % 2:
        await hear(ctx, heard, 1)


async def hear(ctx: Context, heard: list[int], timeout: float | None = None) -> None:
    """Adds the next message, or 0 if none comes in time."""
    if timeout is None:
        heard.append((await ctx.mailbox.next(GO)).body)
        return
    message = await ctx.mailbox.next(GO, timeout=timeout, default=None)
    heard.append(0 if message is None else message.body)
