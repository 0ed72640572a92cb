"""Runs step bodies beside the turn: sync ones in daemon threads, async ones on one background event loop."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from time import monotonic  # noqa: TID251 - bodies take real time, also where the clock is virtual
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from durable.step_context import StepContext, enter_step

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from durable.engine.undoing import Undo
    from durable.ops.step import StepOperation

    Attempted: TypeAlias = StepOperation | Undo
    """What a turn makes attempts at."""


class Performed(Protocol):
    """A piece of the user's code that a run wants performed, by a turn or by a worker."""

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    @property
    def location(self) -> str:
        """Where its result belongs."""
        ...

    @property
    def name(self) -> str:
        """What it is called there."""
        ...

    @property
    def call(self) -> Callable[[], Any]:
        """The code with its arguments bound; what it returns may be awaitable."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One attempt at a step's body (or at the question whether it was done: `verifies`)."""

    operation: Performed
    attempt: int
    started_at: float
    call: Callable[[], Any]
    context: Context
    step: StepContext
    verifies: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """How a body ended."""

    job: Job
    value: Any = None
    error: BaseException | None = None


class StepRunner(Protocol):
    """Runs the bodies of one turn's steps."""

    def start(self, job: Job) -> None:
        """Begins a body; never waits for it."""
        ...

    def next(self, timeout: float) -> Finished | None:
        """The next body that ended, or None after `timeout` seconds of real time."""
        ...

    def elapsed(self) -> float:
        """Seconds by the clock that bodies are timed with: real time, also where all other time is virtual."""
        ...


class ThreadStepRunner:
    """The runner of production: bodies side by side, each in its own copy of the operation's context."""

    def __init__(self) -> None:
        self._finished: queue.SimpleQueue[Finished] = queue.SimpleQueue()

    def start(self, job: Job) -> None:
        """Begins the body in a pooled daemon thread."""
        _threads.submit(lambda: job.context.run(self._run, job))

    def next(self, timeout: float) -> Finished | None:
        """Waits for the next body to end."""
        try:
            return self._finished.get(timeout=max(0.0, timeout)) if timeout > 0 else self._finished.get_nowait()
        except queue.Empty:
            return None

    def elapsed(self) -> float:
        """Real seconds from an arbitrary point."""
        return monotonic()

    def _run(self, job: Job) -> None:
        enter_step(job.step)
        try:
            value = job.call()
        except BaseException as error:  # noqa: BLE001 - SystemExit in a step is the step's failure, not ours
            self._finished.put(Finished(job, error=error))
            return
        if inspect.isawaitable(value):
            # A copy: this thread is still inside the job's own context, and a context can be entered once.
            _background.submit(_awaited(value), copy_context(), lambda task: self._finished.put(_outcome(job, task)))
            return
        self._finished.put(Finished(job, value))


class InlineStepRunner:
    """Runs each body when its result is asked for: one after another, always in the same order."""

    def __init__(self) -> None:
        self._waiting: list[Job] = []

    def start(self, job: Job) -> None:
        """Puts the body in line."""
        self._waiting.append(job)

    def next(self, timeout: float) -> Finished | None:  # noqa: ARG002 - nothing to wait for
        """Runs the first body in line."""
        if not self._waiting:
            return None
        job = self._waiting.pop(0)
        try:
            return Finished(job, job.context.run(self._run, job))
        except Exception as error:  # noqa: BLE001 - whatever a body raises is its outcome
            return Finished(job, error=error)

    def elapsed(self) -> float:
        """Stands still: a body that runs inline never times out."""
        return 0.0

    def _run(self, job: Job) -> Any:
        enter_step(job.step)
        value = job.call()
        return _background.run(_awaited(value), copy_context()) if inspect.isawaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value


def _outcome(job: Job, task: asyncio.Task[Any]) -> Finished:
    if task.cancelled():
        return Finished(job, error=asyncio.CancelledError("the step's task was cancelled"))
    error = task.exception()
    return Finished(job, error=error) if error is not None else Finished(job, task.result())


class _Threads:
    """Daemon threads, reused while they come back.

    Not a ThreadPoolExecutor: it joins its threads at exit and has a fixed number, so one body that never returns
    would keep the process alive and starve the others.
    """

    def __init__(self) -> None:
        self._idle: queue.SimpleQueue[queue.SimpleQueue[Callable[[], None]]] = queue.SimpleQueue()

    def submit(self, work: Callable[[], None]) -> None:
        inbox: queue.SimpleQueue[Callable[[], None]]
        try:
            inbox = self._idle.get_nowait()
        except queue.Empty:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name="durable-step", daemon=True).start()
        inbox.put(work)

    def _serve(self, inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
        while True:
            inbox.get()()
            self._idle.put(inbox)


class _Background:
    """One event loop for async steps, for as long as the process lives, so that module-level async clients keep working."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, coroutine: Any, context: Context, done: Callable[[asyncio.Task[Any]], None]) -> None:
        loop = self._started()

        def begin() -> None:
            loop.create_task(coroutine, context=context).add_done_callback(done)

        loop.call_soon_threadsafe(begin)

    def run(self, coroutine: Any, context: Context) -> Any:
        """Waits for the coroutine in the calling thread, which may have an event loop of its own."""
        ended: Future[Any] = Future()

        def done(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                ended.set_exception(asyncio.CancelledError("the step's task was cancelled"))
            elif (error := task.exception()) is not None:
                ended.set_exception(error)
            else:
                ended.set_result(task.result())

        self.submit(coroutine, context, done)
        return ended.result()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="durable-async-steps", daemon=True).start()
            return self._loop


_threads = _Threads()
_background = _Background()
