"""An engine for tests of the replay core: virtual time, random order of completion, lost writes, fences and kills."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from durable import failures
from durable.execution import Execution, Raised, Returned, RunInfo
from durable.journal import current_scope, name_waits
from durable.loop import WorkflowLoop
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.run import Wait
from durable.ops.join import join
from durable.ops.loop import loop
from durable.ops.map import Items, map_items
from durable.ops.operation import KnownOperation, Operation, WaitOperation
from durable.ops.race import race
from durable.ops.receive import ReceiveOperation
from durable.ops.retrying import retrying
from durable.ops.sleep import SleepOperation, SleepUntilOperation
from durable.ops.step import StepOperation
from durable.ops.try_block import try_block
from durable.ops.try_map import Bounds, try_map
from durable.ops.version import VersionOperation
from durable.ops.wait_until import Polling, wait_until
from durable.options import MISSING, Backoff, Step

POLICY = Step()
STARTED_AT = 1_000_000.0
INFO = RunInfo(id="run-1", workflow="under_test", version="1", started_at=datetime.fromtimestamp(STARTED_AT, UTC))

Event = tuple[str, str, str]
"""The scope, what happened there, and a detail."""


class Ctx:
    """As much of a context as these tests need; it notes what happens in which scope."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.trace: list[Event] = []

    def note(self, what: str, detail: object = "") -> None:
        if self.execution.loop.closing is None:
            self.trace.append((current_scope.get().prefix, what, str(detail)))

    def step(self, fn: Any, *args: Any, policy: Step = POLICY) -> StepOperation:
        name = None
        if isinstance(fn, str):
            name, fn, args = fn, args[0], args[1:]
        operation = StepOperation(self.execution, name, policy, fn, args)
        self.note("called", operation.location)
        return operation

    def sleep(self, seconds: float, name: str | None = None) -> SleepOperation:
        return SleepOperation(self.execution, seconds, name)

    def sleep_until(self, moment: float, name: str | None = None) -> SleepUntilOperation:
        return SleepUntilOperation(self.execution, moment, name)

    def next(self, *signals: str, timeout: float | None = None, default: Any = MISSING, name: str | None = None) -> Any:
        types = dict.fromkeys(signals, str)
        return ReceiveOperation(self.execution, name, types, timeout=timeout, default=default, shape="body")

    def join(self, name: str, branches: Mapping[str, Callable[[Ctx], Awaitable[Any]]]) -> Any:
        return join(self.execution, name, {key: partial(fn, self) for key, fn in branches.items()})

    def race(self, name: str, branches: Mapping[str, Callable[[Ctx], Awaitable[Any]]], **options: Any) -> Any:
        return race(self.execution, name, {key: partial(fn, self) for key, fn in branches.items()}, **options)

    def map(
        self, name: str, items: Iterable[Any], fn: Callable[[Ctx, Any], Awaitable[Any]], concurrency: int = 10
    ) -> Any:
        return map_items(self.execution, name, items, partial(fn, self), concurrency=concurrency)

    def loop(self, name: str, body: Any, state: Any = MISSING, history: int = 20) -> Any:
        return loop(self.execution, name, body, partial(body, self), state=state, history=history)

    def try_map(self, name: str, items: Iterable[Any], fn: Callable[[Ctx, Any], Awaitable[Any]], **bounds: Any) -> Any:
        known = Bounds(**{"concurrency": 10, "tolerate": None, "enough": None, **bounds})
        return try_map(self.execution, name, Items.of(name, items, None), partial(fn, self), known)

    def try_block(self, name: str, body: Callable[[Ctx], Awaitable[Any]]) -> Any:
        return try_block(self.execution, name, partial(body, self), ("step", "join", "race", "block"))

    def retrying(self, name: str, body: Callable[[Ctx], Awaitable[Any]], retries: int) -> Any:
        return retrying(self.execution, name, partial(body, self), retries=retries, backoff=Backoff(1))

    def wait_until(self, name: str, check: Callable[..., Any], state: Any, timeout: float | None = None) -> Any:
        polling = Polling(every=Backoff(1), timeout=timeout, attempts=None, policy=POLICY)
        return wait_until(self.execution, name, check, polling, state)

    def get_version(self, name: str, latest: int) -> int:
        return VersionOperation(self.execution, name, latest).answer

    def now(self) -> float:
        return self.execution.time


Workflow = Callable[[Ctx], Any]


@dataclass
class Opened:
    """An execution and the context that its workflow got."""

    execution: Execution
    ctx: Ctx
    pending: list[str] = field(default_factory=list)
    """Keys of what waited for a result when it was unwound."""

    @property
    def result(self) -> str:
        """The outcome as a text that can be compared; empty while it runs."""
        if not self.execution.finished:
            return ""
        match self.execution.outcome:
            case Returned(value):
                return f"returned {value!r}"
            case Raised(error):
                return f"raised {type(error).__name__} {error}"


class SlowLoop(WorkflowLoop):
    """Goes through the loop for every result: the fast path is never taken."""

    @property
    def cancelled_something(self) -> bool:
        return True

    @cancelled_something.setter
    def cancelled_something(self, value: bool) -> None: ...


def open_run(
    workflow: Workflow,
    history: Iterable[Entry] = (),
    *,
    waits: Sequence[Wait] = (),
    waits_digest: str | None = None,
    slow: bool = False,
) -> Opened:
    contexts: list[Ctx] = []

    def program(execution: Execution) -> Any:
        contexts.append(Ctx(execution))
        return workflow(contexts[0])

    execution = Execution(program, INFO, history=history, started_at=STARTED_AT, waits=waits, waits_digest=waits_digest)
    if slow:
        execution.loop.__class__ = SlowLoop
    return Opened(execution, contexts[0])


class Killed(Exception):
    """The invocation died."""


@dataclass
class Store:
    """What survives a kill."""

    items: dict[str, Entry] = field(default_factory=dict)
    epoch: int = 0
    fences: dict[int, int] = field(default_factory=dict)
    mail: list[StoredMessage] = field(default_factory=list)
    clock: float = STARTED_AT
    waits: tuple[Wait, ...] = ()
    waits_digest: str | None = None
    dirty: bool = False

    def valid(self) -> list[Entry]:
        never = 1 << 60
        kept = (entry for entry in self.items.values() if entry.n <= self.fences.get(entry.epoch, never))
        return sorted(kept, key=lambda entry: entry.order)

    def consumed(self) -> set[str]:
        return {message.id for entry in self.valid() for message in entry.messages}

    def take_over(self) -> None:
        """Fences the epoch that was not released: only its gap-free prefix counts."""
        numbers = {entry.n for entry in self.items.values() if entry.epoch == self.epoch}
        prefix = 0
        while prefix + 1 in numbers:
            prefix += 1
        self.fences[self.epoch] = prefix


@dataclass
class Chances:
    """How often things happen."""

    kill: float = 0.0
    suspend: float = 0.3
    fail_attempt: float = 0.2


class VirtualEngine:
    """Takes turns of one run until it has ended."""

    def __init__(
        self, workflow: Workflow, rng: random.Random, store: Store | None = None, chances: Chances | None = None
    ) -> None:
        self.workflow = workflow
        self.rng = rng
        self.store = store or Store()
        self.chances = chances or Chances()
        self.turns: list[tuple[list[Event], Execution]] = []
        self.effects: list[str] = []
        self.reports: list[str] = []

    def run(self, max_turns: int = 10_000) -> str:
        """The result; Misuse is raised."""
        for _ in range(max_turns):
            turn = Turn(self)
            try:
                if turn.play():
                    return turn.opened.result
            except Killed:
                self.store.dirty = True
            finally:
                self.turns.append((turn.opened.ctx.trace, turn.opened.execution))
                self.reports += turn.execution.unwind()
        raise AssertionError("the run does not end")


class Turn:
    """One turn: replay, then live."""

    def __init__(self, engine: VirtualEngine) -> None:
        self.engine = engine
        self.store = store = engine.store
        self.rng = engine.rng
        if store.dirty:
            store.take_over()
            store.dirty = False
        store.epoch += 1
        self.n = 0
        self.opened = open_run(engine.workflow, store.valid(), waits=store.waits, waits_digest=store.waits_digest)
        self.execution = self.opened.execution
        self.loaded = {entry.key for entry in store.valid()}
        self.steps: list[StepOperation] = []
        self.waits: list[WaitOperation] = []
        self.known: list[KnownOperation] = []

    def play(self) -> bool:
        """Whether the run has ended; otherwise it is suspended."""
        self.execution.advance()
        self.collect()
        while not self.execution.finished:
            self.may_die()
            ready = self.ready_wait()
            if self.known:
                self.record(self.known.pop(0))
            elif self.steps and (ready is None or self.rng.random() < 0.7):
                self.finish_steps()
            elif ready is not None:
                self.record_wait(ready)
            else:
                self.execution.check_stuck(pending=bool(self.steps or self.waits))
                self.skip_time()
                if self.rng.random() < self.engine.chances.suspend:
                    return self.suspend()
            self.collect()
            if not self.steps and not self.known and self.rng.random() < self.engine.chances.suspend / 4:
                return self.execution.finished or self.suspend()
        return True

    def suspend(self) -> bool:
        self.store.waits, self.store.waits_digest = name_waits(self.waits, at_most=self.rng.choice([0, 1, 2, 8]))
        return False

    def may_die(self, share: float = 1.0) -> None:
        if self.rng.random() < self.engine.chances.kill * share:
            raise Killed

    def collect(self) -> None:
        for operation in self.execution.take():
            assert operation.key not in self.loaded, ("to be performed though recorded", operation)
            match operation:
                case KnownOperation(answered=True):
                    self.record(operation)
                case KnownOperation():
                    self.known.append(operation)
                case StepOperation():
                    self.steps.append(operation)
                case WaitOperation():
                    self.waits.append(operation)
                case _:
                    raise AssertionError(operation)
        for operation in [step for step in self.steps if step.dead]:
            self.steps.remove(operation)
            if self.rng.random() < 0.5:  # a body that runs on after the cancellation may still be recorded
                self.deliver(self.perform(operation))
        self.waits = [wait for wait in self.waits if not wait.dead]
        self.known = [known for known in self.known if not known.dead]

    # Recording

    def entry(self, operation: Operation, **content: Any) -> Entry:
        self.n += 1
        at = max(self.execution.time, self.store.clock)
        return Entry(
            location=operation.location, mark=operation.mark, kind=operation.kind, fn=operation.fn,
            branches=operation.branches, epoch=self.store.epoch, n=self.n, at=at, **content,
        )  # fmt: skip

    def write(self, entry: Entry) -> None:
        self.store.items[entry.key] = entry

    def deliver(self, entry: Entry) -> None:
        self.write(entry)
        self.execution.deliver(entry)

    def record(self, operation: KnownOperation) -> None:
        self.deliver(self.entry(operation, value=operation.text))

    def finish_steps(self) -> None:
        """Some steps end side by side: any of their writes may be lost, and they are delivered in order of record."""
        chosen = self.rng.sample(self.steps, self.rng.randint(1, min(3, len(self.steps))))
        batch = [self.attempt(step) for step in chosen]
        for entry in self.rng.sample(batch, len(batch)):
            self.may_die(0.5)
            self.write(entry)
        for step, entry in zip(chosen, batch, strict=True):
            if not entry.mark:
                self.steps.remove(step)
            self.execution.deliver(entry)
            for operation in self.execution.take():
                if isinstance(operation, KnownOperation) and operation.answered:
                    self.record(operation)
                else:
                    self.execution.journal.fresh.append(operation)
            if self.execution.finished:
                return
            self.may_die(0.5)

    def attempt(self, step: StepOperation) -> Entry:
        attempts = len(step.attempts)
        if attempts < 2 and self.rng.random() < self.engine.chances.fail_attempt:
            return replace(self.entry(step, attempts=attempts + 1), mark=f"@{attempts + 1}")
        return self.perform(step)

    def perform(self, step: StepOperation) -> Entry:
        self.store.clock += self.rng.random() * 0.01
        self.engine.effects.append(step.location)
        try:
            return self.entry(step, value=step.encode(step.context.run(step.call)), attempts=1)
        except Exception as error:  # noqa: BLE001  whatever a body raises is its outcome
            return self.entry(step, error=failures.record(error), failure="exhausted", attempts=1)

    # Waits

    def available(self) -> list[StoredMessage]:
        consumed = self.store.consumed()
        arrived = (m for m in self.store.mail if m.arrived_at <= self.store.clock and m.id not in consumed)
        return sorted(arrived, key=lambda message: message.order)

    def ready_wait(self) -> tuple[WaitOperation, tuple[StoredMessage, ...]] | None:
        """The wait that resolves first in event-time order; on a tie the message, then the order of declaration."""
        available = self.available()
        ready: list[tuple[float, int, int]] = []
        claims: dict[int, tuple[StoredMessage, ...]] = {}
        for place, wait in enumerate(self.waits):
            claimed = wait.claim(available)
            due = wait.deadline
            if claimed and (due is None or claimed[0].arrived_at <= due or wait.immediate):
                claims[place] = claimed
                ready.append((claimed[0].arrived_at, 0, place))
            elif due is not None and due <= self.store.clock:
                ready.append((due, 1, place))
        if not ready:
            return None
        place = min(ready)[2]
        return self.waits[place], claims.get(place, ())

    def record_wait(self, ready: tuple[WaitOperation, tuple[StoredMessage, ...]]) -> None:
        wait, messages = ready
        self.waits.remove(wait)
        if messages:
            entry = self.entry(wait, messages=messages, value=wait.on_messages(messages))
        else:
            value, error = wait.on_deadline()
            entry = self.entry(wait, value=value, error=error)
        self.write(entry)
        self.may_die()
        self.execution.deliver(entry)

    def skip_time(self) -> None:
        moments = [wait.deadline for wait in self.waits if wait.deadline is not None]
        moments += [message.arrived_at for message in self.store.mail if message.arrived_at > self.store.clock]
        assert moments, ("nothing will ever wake it", self.waits)
        self.store.clock = max(self.store.clock, min(moments))


def message(id_: str, name: str, body: str, after: float) -> StoredMessage:
    return StoredMessage(id=id_, name=name, body=f'"{body}"', arrived_at=STARTED_AT + after)
