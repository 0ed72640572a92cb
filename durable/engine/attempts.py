"""Attempts at steps: started while there is time for them, retried, charged after a crash, recorded once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from durable import failures
from durable.engine.retries import GiveUp, Retry, after_failure
from durable.engine.steps import Finished, Job
from durable.errors import (
    AttemptInterrupted,
    LimitExceeded,
    Misuse,
    NotStorable,
    StepInterrupted,
    StepTimeout,
    StepTooLong,
)
from durable.ops.offload import OffloadOperation
from durable.step_context import StepContext
from durable.values import NotDone, Ok

if TYPE_CHECKING:
    from collections.abc import Iterable

    from durable.engine.options import EngineOptions
    from durable.engine.steps import Attempted, StepRunner
    from durable.engine.writer import EntryWriter
    from durable.model.entry import Compensation, Entry
    from durable.model.run import Run
    from durable.ports import Clock
    from durable.propagation import Carriers


FRESH = 0.9
"""Share of a whole invocation's time for steps: with so much left it counts as whole; acquiring and loading took the rest."""


@dataclass(slots=True, eq=False)
class Pending:
    """A step that the workflow waits for: not started yet, between attempts, or running."""

    operation: Attempted
    attempt: int = 0
    """Attempts made so far, the running one included."""
    not_before: float = 0.0
    job: Job | None = None
    timeout: float = 0.0
    gives_up_at: float = 0.0
    """When the running attempt times out, by the runner's clock."""
    started: list[float] = field(default_factory=list[float])
    compensation: Compensation | None = None


class Attempts:
    """The steps of one turn."""

    def __init__(
        self, *, run: Run, writer: EntryWriter, runner: StepRunner, clock: Clock, options: EngineOptions, ends: float,
        longest: float, carriers: Carriers,
    ) -> None:  # fmt: skip
        self._run = run
        self._carriers = carriers
        self._writer = writer
        self._runner = runner
        self._clock = clock
        self._options = options
        self._ends = ends
        self._longest = longest
        self._pending: dict[str, Pending] = {}
        self._one_at_a_time = False
        self._no_more_attempts = False
        self._may_hold = True
        """Whether results of ephemeral steps are held; not after a death, so that what dies next is known."""

    # What the session asks

    @property
    def running(self) -> list[Pending]:
        """Steps whose body is being run."""
        return [step for step in self._pending.values() if step.job is not None]

    def next_start(self, now: float) -> float | None:
        """When an attempt that has to wait may start, seconds since 1970; None when none has to wait."""
        waiting = [step.not_before for step in self._pending.values() if step.job is None]
        return min((moment for moment in waiting if moment > now), default=None)

    def __bool__(self) -> bool:
        return bool(self._pending)

    def admit(self, operation: Attempted) -> Entry | None:
        """Takes in a step that the workflow awaits; an entry at once where no attempt may follow."""
        step = Pending(operation)
        if operation.attempts:
            last = operation.attempts[-1]
            step.attempt = last.attempts
            step.not_before = last.retry_at or 0.0
        self._pending[operation.location] = step
        if isinstance(operation, OffloadOperation):
            operation.keep = self._writer.keep
        try:
            if (undo := operation.compensation) is not None:
                args = self._writer.keep_text(undo.args, f"what {undo.fn} is called with")
                step.compensation = replace(undo, args=args)
        except (NotStorable, LimitExceeded) as error:
            return self._give_up(step, error, GiveUp("critical"))
        return self._interrupted(step) if operation.policy.at_most_once and operation.attempts else None

    def charge(self, dead_turns: int) -> Entry | None:
        """After a take-over: steps in doubt run one at a time, and the one that was alone is charged an attempt.

        With several in doubt nobody knows which one ended the invocation; then the first of them runs alone, and is
        the one to be charged if that turn dies too.
        """
        now = self._clock.now()
        doubtful = [step for step in self._pending.values() if step.not_before <= now and step.job is None]
        doubtful = [step for step in doubtful if not step.operation.policy.at_most_once]
        self._one_at_a_time = bool(doubtful)
        self._may_hold = False
        if len(doubtful) == 1 or (doubtful and dead_turns > 1):
            first = doubtful[0]
            if first.operation.policy.ephemeral and dead_turns <= 1:
                # Its result may have been held. It is written at once in this turn, so the next death tells.
                return None
            first.attempt += 1
            return self._failed(first, AttemptInterrupted())
        return None

    def forget_cancelled(self) -> None:
        """Drops steps that the workflow no longer waits for; a body that runs is told, not stopped.

        One that runs and can be undone stays until it ends: only what is recorded can be undone.
        """
        for location, step in list(self._pending.items()):
            if step.operation.dead:
                if step.job is not None:
                    step.job.step.cancel()
                if step.job is None or step.compensation is None:
                    del self._pending[location]

    def only_undoable(self, doubtful: Iterable[Attempted]) -> None:
        """Before a rollback: keeps what runs and can be undone, for one last attempt, and what a lost turn may have begun."""
        self._no_more_attempts = True
        for location, step in list(self._pending.items()):
            if step.job is not None and step.compensation is None:
                step.job.step.cancel()
            if step.job is None or step.compensation is None:
                del self._pending[location]
        for operation in doubtful:
            if operation.location not in self._pending:
                self.admit(operation)

    def abandon(self) -> None:
        """Tells every body that runs that its result is not wanted any more."""
        for step in self.running:
            if step.job is not None:
                step.job.step.cancel()

    def start_due(self) -> bool:
        """Starts what may start now. True when something is left out for want of time: a fresh invocation is needed."""
        now = self._clock.now()
        running = len(self.running)
        allowed = 1 if self._one_at_a_time else self._options.parallel_steps
        for step in list(self._pending.values()):
            if step.job is not None:
                continue
            if running >= allowed:
                return False
            if step.not_before > now:
                continue
            if not self._fits(step):
                return True
            self._start(step)
            running += 1
        return False

    def wait(self, seconds: float) -> Entry | None:
        """Waits for a body to end or time out, at most so long (real time); the step's result if there is one now."""
        first_timeout = min(step.gives_up_at for step in self.running)
        finished = self._runner.next(min(seconds, max(0.0, first_timeout - self._runner.elapsed())))
        if finished is not None:
            return self._finished(finished)
        for step in self.running:
            if self._runner.elapsed() >= step.gives_up_at:
                return self._timed_out(step)
        return None

    # Starting

    def _fits(self, step: Pending) -> bool:
        policy = step.operation.policy
        left = self._ends - self._clock.monotonic()
        timeout = self._longest if policy.timeout is None else policy.timeout
        if policy.timeout_is_ours:
            timeout = min(timeout, FRESH * self._longest)  # nobody asked for just so much
        if timeout > self._longest:
            raise StepTooLong(step.operation.name, timeout, self._longest)
        if timeout > left >= FRESH * self._longest:
            timeout = left  # no invocation has more: it would be handed over for ever
        step.timeout = timeout
        return timeout <= left

    def _start(self, step: Pending) -> None:
        operation = step.operation
        verifies = operation.policy.at_most_once and step.attempt > 0 and not step.started
        if not verifies:
            step.attempt += 1
        now = self._clock.now()
        if step.compensation is not None:
            self._writer.flush()  # what it is based on must be known to whoever may have to undo it
        if operation.policy.at_most_once and not verifies:
            self._writer.write(
                operation, mark=f"{operation.mark}@{step.attempt}", attempts=step.attempt, started_at=now
            )
            self._writer.confirm()
        step.started.append(now)
        step.gives_up_at = self._runner.elapsed() + step.timeout
        context = StepContext(
            run_id=self._run.id, workflow=self._run.workflow, headers=self._run.headers, location=operation.location,
            attempt=step.attempt, idempotency_key=operation.idempotency_key, ends=now + step.timeout,
            append=partial(self._writer.streams.append_of_step, source=operation.location, attempt=step.attempt),
            fetch=self._writer.fetch,
        )  # fmt: skip
        call = partial(_verify, operation) if verifies else operation.call
        call = self._carriers.around(self._run.headers, call)
        step.job = Job(operation, step.attempt, now, call, operation.context.copy(), context, verifies)
        self._runner.start(step.job)

    def _interrupted(self, step: Pending) -> Entry | None:
        """An at-most-once attempt began in an earlier turn and left no result: ask, if there is someone to ask."""
        if step.operation.policy.verify_fn is not None:
            return None
        return self._not_known(step)

    # Ending

    def _finished(self, finished: Finished) -> Entry | None:
        job = finished.job
        step = self._pending.get(job.operation.location)
        if step is None or step.job is not job:
            return None  # late: its attempt is over, or the workflow no longer waits for it
        step.job = None
        self._one_at_a_time = False  # it has come back, whatever it brings
        if isinstance(finished.error, Misuse):
            raise finished.error  # broken code, not a failed attempt: nothing of it is recorded
        if job.verifies:
            return self._verified(step, finished)
        if finished.error is not None:
            return self._failed(step, finished.error)
        return self._succeeded(step, finished.value)

    def _succeeded(self, step: Pending, value: object) -> Entry | None:
        try:
            text = step.operation.encode(value)
            if text is not None:
                text = self._writer.keep_text(text, f'the result of step "{step.operation.name}"')
        except (NotStorable, LimitExceeded) as error:
            return self._give_up(step, error, GiveUp("critical"))
        return self._record(step, value=text, compensation=step.compensation)

    def _timed_out(self, step: Pending) -> Entry | None:
        job, step.job = step.job, None
        self._one_at_a_time = False
        if job is not None:
            job.step.cancel()
        return self._failed(step, StepTimeout(step.timeout))

    def _failed(self, step: Pending, error: BaseException) -> Entry | None:
        operation = step.operation
        if operation.dead or self._no_more_attempts:
            del self._pending[operation.location]
            return None
        match after_failure(operation.policy, step.attempt, error, operation.idempotency_key):
            case GiveUp() as end:
                return self._give_up(step, error, end)
            case Retry(delay):
                step.not_before = self._clock.now() + delay
                self._writer.write(
                    operation, mark=f"{operation.mark}@{step.attempt}", attempts=step.attempt, error=failures.record(error),
                    started_at=step.started[-1] if step.started else None, retry_at=step.not_before,
                )  # fmt: skip
                return None

    def _give_up(self, step: Pending, error: BaseException, end: GiveUp) -> Entry:
        return self._record(step, error=failures.record(error), failure=end.kind)

    def _verified(self, step: Pending, finished: Finished) -> Entry | None:
        verdict = finished.value
        if isinstance(verdict, Ok):
            return self._succeeded(step, cast("Ok[object]", verdict).value)
        if isinstance(verdict, NotDone):
            step.started.append(finished.job.started_at)  # asked: the next attempt is a real one
            return None
        return self._not_known(step)

    def _not_known(self, step: Pending) -> Entry:
        operation = step.operation
        began = operation.attempts[-1].started_at or 0.0
        error = StepInterrupted(
            operation.name, operation.idempotency_key, f"{datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
        return self._record(step, error=failures.record(error), failure="critical")

    def _record(self, step: Pending, **outcome: Any) -> Entry:
        ephemeral = self._may_hold and step.operation.policy.ephemeral and "error" not in outcome
        record = self._writer.hold if ephemeral else self._writer.write
        started_at = step.started[-1] if step.started else None
        entry = record(step.operation, attempts=step.attempt, started_at=started_at, **outcome)
        del self._pending[step.operation.location]
        return entry


def _verify(operation: Attempted) -> object:
    verify = operation.policy.verify_fn
    args, kwargs = operation.arguments
    return None if verify is None else verify(*args, **kwargs)


def earliest(times: Iterable[float | None]) -> float | None:
    """The smallest of the times that are given."""
    return min((time for time in times if time is not None), default=None)
