"""Performs tasks of remote steps: begins them, watches their time, tells their runs how they ended.

| where a worker may die             | what follows                                                                    |
|------------------------------------|---------------------------------------------------------------------------------|
| before or while the body runs      | the queue delivers the task again; the attempt keeps the time of its first pickup |
| after the body, before the result  | the same: a body may run more than once, under one idempotency key              |
| after the result                   | the task comes again and its result is sent again; the run takes the first      |
"""

from __future__ import annotations

import contextvars
import logging
import math
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from durable.engine.options import EngineOptions
from durable.engine.pickup import pick_up, received
from durable.engine.remote_body import RemoteBody, context_of
from durable.engine.reporting import failed, report, unusable
from durable.engine.steps import Job, ThreadStepRunner
from durable.errors import (
    InvalidInput,
    LimitExceeded,
    NotStorable,
    StepTimeout,
    StoreUnavailable,
    UnknownRemoteStep,
)
from durable.logs import about_run
from durable.model.task import TaskOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.app import App
    from durable.engine.steps import Finished, StepRunner
    from durable.model.delivery import TaskDelivery
    from durable.model.task import StepTask
    from durable.ports import Ports

log = logging.getLogger("durable")

UNKNOWN_TRIES: Final = 5
"""So often a task of an unknown remote step is given back before that is reported: a deployment may be under way."""
ENOUGH: Final = 0.9
"""A body that gets at least this share of its time is not worth a warning: an invocation keeps some for telling the result."""
LONGEST_WAIT: Final = 3600.0


class Visibility(Protocol):
    """Keeps tasks that are being performed hidden from other workers."""

    @property
    def seconds(self) -> float:
        """How long a task stays hidden when it is hidden anew; it is, whenever half of that has passed."""
        ...

    def hide(self, delivery_id: str, seconds: float) -> None:
        """Hides a task for so long from now."""
        ...


@dataclass(slots=True, eq=False)
class _Running:
    """A task whose body is being run."""

    delivery: TaskDelivery
    task: StepTask
    body: RemoteBody
    job: Job
    timeout: float
    gives_up_at: float
    """By the runner's clock, as `hide_at`."""
    hide_at: float
    picked_up_at: float


class RemoteWorker:
    """What an invocation of the remote-step function does, or a worker process; safe to share between threads."""

    def __init__(
        self, app: App[Any], ports: Ports, *, name: str = "worker", options: EngineOptions | None = None,
        steps: Callable[[], StepRunner] = ThreadStepRunner, told: Callable[[StepTask, TaskOutcome], None] | None = None,
    ) -> None:  # fmt: skip
        """`told` is called with each outcome that a run has been told."""
        self.app = app
        self.ports = ports
        self.name = name
        self.options = options or EngineOptions()
        self.told = told
        self._new_runner = steps
        self._lock = Lock()
        self._batches: set[_Batch] = set()

    def process(
        self,
        deliveries: Sequence[TaskDelivery],
        *,
        remaining: float = math.inf,
        worker: str | None = None,
        visibility: Visibility | None = None,
    ) -> Sequence[str]:
        """Performs tasks side by side; answers the ids of deliveries that must come back.

        All the others are to be acknowledged. `remaining` is what the invocation has left, in seconds: a body that asks
        for more gets what there is. `worker` names the invocation, for people.
        """
        batch = _Batch(self, self._new_runner(), worker or self.name, remaining, visibility)
        with self._lock:
            self._batches.add(batch)
        try:
            return batch.process(deliveries)
        finally:
            with self._lock:
                self._batches.discard(batch)

    def cancel(self) -> None:
        """Tells every body that runs that its result is not wanted here any more: the process is about to end."""
        with self._lock:
            batches = list(self._batches)
        for batch in batches:
            batch.cancel()


class _Batch:
    """The tasks of one call of `process`; all of them begin at once."""

    def __init__(
        self, worker: RemoteWorker, runner: StepRunner, name: str, remaining: float, visibility: Visibility | None
    ) -> None:
        self._app = worker.app
        self._ports = worker.ports
        self._told = worker.told
        self._runner = runner
        self._name = name
        self._visibility = visibility
        self._ends = worker.ports.clock.monotonic() + remaining - worker.options.reserve_of(remaining)
        self._running: dict[int, _Running] = {}
        self._failed: list[str] = []

    def process(self, deliveries: Sequence[TaskDelivery]) -> Sequence[str]:
        for delivery in deliveries:
            task = received(self._ports, delivery)
            if task is None:
                self._failed.append(delivery.id)
                continue
            self._guarded(delivery, task, lambda d=delivery, t=task: self._begin(d, t))
        while self._running:
            finished = self._runner.next(self._pause())
            if finished is not None:
                self._finished(finished)
            self._watch()
        return self._failed

    def cancel(self) -> None:
        for running in list(self._running.values()):
            running.job.step.cancel()

    def _guarded(self, delivery: TaskDelivery, task: StepTask, act: Callable[[], None]) -> None:
        """One task's trouble is never another's: the task comes back."""
        with about_run(task.run_id, task.workflow, location=task.location, attempt=task.attempt):
            try:
                act()
            except StoreUnavailable as error:
                log.warning("run %s: %s comes back: %s", task.run_id, task.id, error)
            except Exception:
                log.exception("run %s: %s comes back", task.run_id, task.id)
            else:
                return
        self._failed.append(delivery.id)

    # Beginning

    def _begin(self, delivery: TaskDelivery, task: StepTask) -> None:
        now = self._ports.clock.now()
        remote = self._app.remote_steps.get(task.name)
        if remote is None:
            self._unknown(delivery, task, now)
            return
        picked_up = pick_up(self._ports, task, self._name)
        if picked_up is None:
            return
        left = picked_up.left
        timeout = min(left, self._ends - self._ports.clock.monotonic())
        if timeout <= 0:  # it stood still for longer than it had: that says nothing of the body
            log.warning("run %s: %s comes back: this invocation is over", task.run_id, task.id)
            self._failed.append(delivery.id)
            return
        if timeout < ENOUGH * left:
            log.warning(
                "run %s: %s has %.0f s left of its timeout, but this invocation has %.0f s", task.run_id, task.id, left, timeout
            )  # fmt: skip
        try:
            body = RemoteBody(task, remote)
        except InvalidInput as error:
            self._report(task, failed(error, started_at=picked_up.at, worker=self._name))
            return
        context = context_of(self._ports, task, ends=now + timeout, delivery=delivery.receive_count)
        call = self._app.carriers.around(task.headers, body.call)
        job = Job(body, task.attempt, now, call, contextvars.Context(), context)
        began = self._runner.elapsed()
        self._running[id(job)] = _Running(
            delivery, task, body, job, timeout, began + timeout, began + self._half, picked_up.at
        )
        self._runner.start(job)

    @property
    def _half(self) -> float:
        return math.inf if self._visibility is None else self._visibility.seconds / 2

    def _unknown(self, delivery: TaskDelivery, task: StepTask, now: float) -> None:
        known = ", ".join(sorted(self._app.remote_steps)) or "none"
        error = UnknownRemoteStep(task.name, known)
        if delivery.receive_count < UNKNOWN_TRIES:
            log.warning("run %s: %s comes back: %s", task.run_id, task.id, error)
            self._failed.append(delivery.id)
            return
        self._report(task, failed(error, started_at=now, worker=self._name))

    # Watching

    def _pause(self) -> float:
        """Until a body may have to be given up, or hidden anew."""
        moments = [moment for running in self._running.values() for moment in (running.gives_up_at, running.hide_at)]
        return min(max(0.0, min(moments) - self._runner.elapsed()), LONGEST_WAIT)

    def _watch(self) -> None:
        now = self._runner.elapsed()
        for key, running in list(self._running.items()):
            if now >= running.gives_up_at:
                del self._running[key]
                running.job.step.cancel()
                self._end(running, self._failure(running, StepTimeout(running.timeout)))
            elif now >= running.hide_at:
                running.hide_at = now + self._half
                self._hide(running)

    def _hide(self, running: _Running) -> None:
        if self._visibility is None:
            return
        try:
            self._visibility.hide(running.delivery.id, self._visibility.seconds)
        except Exception:  # at worst somebody else performs it too
            log.exception("run %s: %s could not be kept hidden", running.task.run_id, running.task.id)

    # Ending

    def _finished(self, finished: Finished) -> None:
        running = self._running.pop(id(finished.job), None)
        if running is not None:  # else it is late: the attempt was given up
            self._end(running, self._outcome(running, finished))

    def _end(self, running: _Running, outcome: TaskOutcome) -> None:
        self._guarded(running.delivery, running.task, lambda: self._report(running.task, outcome))

    def _report(self, task: StepTask, outcome: TaskOutcome) -> None:
        if outcome.error is not None:
            log.info(
                "run %s: attempt %d at %s failed: %s", task.run_id, task.attempt, task.location, outcome.error.qualified
            )
        report(self._ports, task.attempt_ref, outcome)
        if self._told is not None:
            self._told(task, outcome)

    def _outcome(self, running: _Running, finished: Finished) -> TaskOutcome:
        if finished.error is not None:
            return self._failure(running, finished.error)
        try:
            text = running.body.encode(finished.value)
        except (NotStorable, LimitExceeded) as error:
            return unusable(error, started_at=running.picked_up_at, worker=self._name)
        return TaskOutcome(value=text, started_at=running.picked_up_at, worker=self._name)

    def _failure(self, running: _Running, error: BaseException) -> TaskOutcome:
        return failed(error, started_at=running.picked_up_at, worker=self._name)
