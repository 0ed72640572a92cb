"""One replay of one run, then its live continuation: history in, commands out; no ports, no I/O, no clock."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from durable.errors import Deadlock, Misuse, RunCancelled
from durable.journal import Cancellation, Checkpoint, Journal, current_scope, is_awaited, unawaited
from durable.loop import Running, WorkflowLoop, cancel_run
from durable.model.entry import Entry
from durable.model.links import NOWHERE, Links
from durable.model.run import Wait
from durable.ops.operation import KnownOperation, Operation
from durable.ops.timer import TimerOperation
from durable.unwinding import unwind

if TYPE_CHECKING:
    from durable.flow import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a workflow may know about its own run: `ctx.run`."""

    id: str
    workflow: str
    version: str
    started_at: datetime
    lineage: str | None = None
    parent: str | None = None
    tags: tuple[str, ...] = ()
    schedule: str | None = None
    nominal_time: datetime | None = None
    """The moment that the schedule stands for, whenever it fired."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """What its starter gave it to pass on: trace context, for one. They go on to children, successors and steps."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The workflow ended with a value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The workflow ended with an exception that it did not handle."""

    exception: BaseException


class Execution:
    """Runs workflow code against its history, one recorded result at a time, and hands out what is not recorded yet.

    `program` gets this execution and returns the workflow's coroutine: `lambda execution: fn(Context(execution), input)`.
    """

    def __init__(
        self,
        program: Callable[[Execution], Coroutine[Any, Any, Any]],
        info: RunInfo,
        *,
        history: Iterable[Entry] = (),
        started_at: float,
        waits: Sequence[Wait] = (),
        waits_digest: str | None = None,
        waited_for: str = "",
        links: Links | None = None,
        app: Registry | None = None,
    ) -> None:
        self.info = info
        self.run_id = info.id
        self.app = app
        """What is registered; None where code is tried without an app."""
        self.links = links or Links(run_id=info.id, public_url=NOWHERE)
        title = f"run {info.id} ({info.workflow} {info.version})"
        self.journal = Journal(title, history, waits, waits_digest)
        self.journal.waited_for = waited_for
        self.loop = self.journal.loop = WorkflowLoop(started_at, self._make_timer)
        self.skipped: list[Entry] = []
        """Results that came after their operation had been cancelled."""
        self.cancelled = False
        """Whether a cancellation of the run was handed to the code."""
        self.live = not self.journal.records and self.journal.order[0] is None and not waits
        """Whether every recorded result has been delivered and everything recorded was claimed."""
        self._root = self.journal.root
        context = contextvars.copy_context()
        context.run(current_scope.set, self._root)
        with Running(self.loop):
            self._main = self.loop.create_task(context.run(program, self), name=info.workflow, context=context)

    def _make_timer(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context
    ) -> TimerOperation:
        return TimerOperation(self, when, callback, args, context)

    # What the engine does with it

    def advance(self) -> None:
        """Runs the code until it waits for something that is not recorded, or ends.

        Raises a Misuse where the code broke a rule, Diverged included, also if the code has swallowed it.
        """
        self.loop.run_until_idle()
        self._deliver_recorded()

    def take(self) -> list[Operation]:
        """Operations that were awaited since the last call, have no record and are still wanted, in that order.

        After the end only those whose value the code has used already (`KnownOperation.answered`).
        """
        fresh: list[Operation] = [operation for operation in self.journal.fresh if not operation.dead]
        self.journal.fresh.clear()
        return [op for op in fresh if _is_answered(op)] if self.finished else fresh

    def deliver(self, entry: Entry) -> None:
        """Hands a result that has just been recorded to its operation and runs until idle; in order of record.

        An attempt's entry (`@k`, `?k`) is only noted. May raise a Misuse.
        """
        if entry.mark.startswith(("@", "?")):
            self._note(entry)
            return
        operation: Operation = self.journal.parked.pop(entry.key)
        if _is_answered(operation):
            return
        self.loop.pass_time(entry.at)
        self.journal.delivered(entry)
        if operation.resolve(entry):
            self.loop.run_until_idle()
        else:
            self.skipped.append(entry)
        self._check()

    def cancellable(self) -> list[str]:
        """Keys of the operations that the code waits for and that have no result yet."""
        parked = self.journal.parked.items()
        return [key for key, operation in parked if isinstance(operation.future, asyncio.Future) and not operation.dead]

    def cancel(self, entry: Entry) -> None:
        """Hands a cancellation that has just been recorded to the operations that it names; may raise a Misuse."""
        self.journal.delivered(entry)
        self._cancel(entry)
        self._check()

    def check_stuck(self, pending: bool) -> None:
        """Raises Deadlock when nothing is pending and the workflow has not ended: nothing could ever wake it."""
        if not pending and not self.finished:
            raise Deadlock(
                f"{self.journal.title} waits for something that no operation completes: an asyncio.Event that nobody sets, "
                "a lock that is never released, a queue that nobody fills."
            )

    def unwind(self) -> list[str]:
        """Ends every task with RunSuspended, newest first; returns what should be in the log."""
        texts = unwind(self.loop, ended=self.finished)
        reports = [*self.loop.reports, *texts]
        self.loop.reports.clear()
        self.journal.fresh.clear()
        return reports

    # What it has come to

    @property
    def time(self) -> float:
        """The recorded time of the latest delivered entry; the run's start before the first."""
        return self.loop.now

    @property
    def replaying(self) -> bool:
        """Whether the code that runs now may have run in an earlier turn: logs are silent."""
        return not self.live

    @property
    def finished(self) -> bool:
        """Whether the workflow has returned or raised."""
        return self._main.done()

    @cached_property
    def outcome(self) -> Returned | Raised:
        """How the workflow ended; only after `finished`. Kept, because a cancelled task tells its own error only once."""
        if self._main.cancelled():
            try:
                self._main.result()
            except BaseException as error:  # noqa: BLE001  the CancelledError itself, with its class
                return Raised(error)
        error = self._main.exception()
        return Returned(self._main.result()) if error is None else Raised(error)

    @property
    def ended_by_cancellation(self) -> bool:
        """Whether the workflow has let a cancellation end it."""
        match self.outcome:
            case Raised(RunCancelled()):
                return True
            case Raised(asyncio.CancelledError()):
                return self.cancelled
            case _:
                return False

    def _deliver_recorded(self) -> None:
        journal, loop = self.journal, self.loop
        while not self._check():
            record = journal.order[journal.position]
            if record is None:
                break
            if isinstance(record, Checkpoint):
                journal.position += 1
                journal.check_further_waits()
                continue
            if isinstance(record, Cancellation):
                journal.position += 1
                self._cancel(record.entry)
                continue
            entry = record.entry
            assert entry is not None
            if not is_awaited(record):
                called = "not called" if record.operation is None else "called and not awaited"
                raise journal.diverged(f'the next result is that of {entry.kind} "{entry.key}", which is {called}')
            journal.position += 1
            loop.pass_time(entry.at)
            operation: Any = record.operation
            if operation.resolve(entry):
                loop.run_until_idle()
            elif operation.may_be_late:
                self.skipped.append(entry)
            else:
                raise journal.diverged(f'the code cancels {entry.kind} "{entry.key}" before its recorded result')
        if not self.finished:
            journal.check_all_claimed()
        self.live = True

    def _cancel(self, entry: Entry) -> None:
        self.cancelled = True
        operations: list[Any] = [self.journal.awaited_at(key) for key in from_json(entry.value or "[]")]
        futures: list[Any] = [operation.future for operation in operations if operation is not None]
        awaited: list[asyncio.Future[Any]] = [future for future in futures if isinstance(future, asyncio.Future)]
        self.loop.pass_time(entry.at)
        cancel_run(self.loop, self._main, awaited)

    def _check(self) -> bool:
        """Raises what stopped the loop; whether the workflow has ended, and may."""
        loop = self.loop
        if loop.misuse is not None:
            raise loop.misuse
        loop.cancelled_something = False
        if not self._main.done():
            return False
        self.journal.check_all_claimed()
        self.journal.check_all_delivered()
        match self.outcome:
            case Raised(Misuse() as misuse):
                raise misuse
            case Returned() if self._root.unawaited:
                raise unawaited(self._root)
            case _:
                return True

    def _note(self, entry: Entry) -> None:
        operation: Operation = self.journal.parked[entry.location]
        operation.note(entry)


def _is_answered(operation: Operation) -> bool:
    return isinstance(operation, KnownOperation) and operation.answered
