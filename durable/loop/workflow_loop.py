"""The event loop of workflow code: a queue of callbacks and nothing else, so that every replay goes the same way."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from durable.errors import BusyLoop, Misuse, NotAllowedInWorkflow, RunSuspended, UnawaitedOperation
from durable.loop.handles import Handle, WorkflowFuture, WorkflowTask
from durable.loop.refusals import RefusingLoop
from durable.model.limits import SLEEP_SECONDS

if TYPE_CHECKING:
    from contextvars import Context
    from types import TracebackType

running_loop = events._get_running_loop  # noqa: SLF001  the public one raises where there is none

MAX_CALLBACKS: Final = 1_000_000
"""Callbacks without a result in between: more than any sensible program needs, and about a second."""

Closing = Literal["suspended", "generator"]


class MakeTimer(Protocol):
    """Makes a durable timer of what `call_at` is given; it has the methods of asyncio.TimerHandle."""

    def __call__(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context
    ) -> Any: ...


class WorkflowLoop(RefusingLoop):
    """Runs callbacks in the order in which they were scheduled, and never waits.

    Time stands still until `now` is moved. What would reach outside is refused with an error that also stops the loop
    (`misuse`), so that an `except` in workflow code cannot hide it.
    """

    def __init__(self, now: float, make_timer: MakeTimer) -> None:
        self.now = now
        self.ready: deque[Handle] = deque()
        self.misuse: Misuse | None = None
        self.closing: Closing | None = None
        self.suspensions = 0
        self.cancelled_something = False
        self.cancelling_run = False
        self.struck: set[int] = set()
        """Numbers of tasks that have got the run's cancellation: while it is handed out they are not cancelled again."""
        self.burst = 0
        self.reports: list[str] = []
        self.max_callbacks = MAX_CALLBACKS
        self.tasks: dict[int, WorkflowTask] = {}
        self.requests: dict[str, Any] = {}
        """Updates that the code has taken, by id; what they are is the operations' business."""
        self._make_timer = make_timer
        self._created = 0
        self._prune_at = 64

    def fail(self, misuse: Misuse) -> Misuse:
        """Stops the loop after the current callback; the first misuse counts."""
        if self.closing is None and self.misuse is None:
            self.misuse = misuse
        return misuse

    def pass_time(self, now: float) -> None:
        """Moves the clock; it never goes back."""
        if now > self.now:  # noqa: PLR1730  max() costs a call for every replayed result
            self.now = now

    def run_until_idle(self) -> None:
        """Runs callbacks until there are none, or until a misuse."""
        ready = self.ready
        left = self.max_callbacks
        with Running(self):
            while ready and self.misuse is None:
                handle = ready.popleft()
                if handle.callback is None:
                    continue
                self.burst = 0
                try:
                    handle.context.run(handle.callback, *handle.args)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # noqa: BLE001  a task keeps its own error, SystemExit included
                    self.report("a callback raised", error)
                left -= 1
                if left < 0:
                    self.fail(BusyLoop(_BUSY))

    def report(self, what: str, error: BaseException | None = None) -> None:
        """Notes what a person should read in the log: not what an error says, which may be a secret."""
        self.reports.append(what if error is None else f"{what}: {type(error).__qualname__}")

    # What asyncio asks of a loop, as far as it works here

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def is_running(self) -> bool:
        # Tasks that start eagerly ask this (3.12+). They would run ahead of the ready queue; with False they start like others.
        return False

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        handle = Handle(callback, args, contextvars.copy_context() if context is None else context)
        self.ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        if not when - self.now <= SLEEP_SECONDS:  # not a number, or beyond what a timer can be set for
            raise self.fail(NotAllowedInWorkflow(f"a timer of {when - self.now:g} s", "timers reach ten years ahead"))
        return self._make_timer(when, callback, args, contextvars.copy_context() if context is None else context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def create_future(self) -> WorkflowFuture:
        future = WorkflowFuture(loop=self)
        future.order = self._next_order()
        return future

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **_eager: Any
    ) -> asyncio.Task[Any]:
        if self.closing is not None:
            return self._stillborn(coro)
        self.check_order(sys._getframe(1))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        context = contextvars.copy_context() if context is None else context
        order = self._next_order()
        task = WorkflowTask.__new__(WorkflowTask)
        # The constructor puts the task into a set, so it must have its hash before.
        task.order, task.number, task.context = order, self._created, context
        task.__init__(coro, loop=self, name=name or f"Task-{self._created}", context=context)
        self.tasks[self._created] = task
        if len(self.tasks) > self._prune_at:
            self.tasks = {number: task for number, task in self.tasks.items() if not task.done()}
            self._prune_at = 64 + 2 * len(self.tasks)
        return task

    @property
    def created(self) -> int:
        """How many tasks and futures there have been."""
        return self._created

    def tasks_since(self, created: int) -> list[WorkflowTask]:
        """The tasks made after there had been so many, in the order of creation."""
        newer: list[WorkflowTask] = []
        for number in reversed(self.tasks):
            if number <= created:
                break
            newer.append(self.tasks[number])
        return newer[::-1]

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.closing is None:
            self.report(str(context.get("message", "an error in workflow code")), context.get("exception"))

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_exception_handler(self) -> None:
        return None

    def get_task_factory(self) -> None:
        return None

    async def shutdown_asyncgens(self) -> None:
        """Nothing to do: generators are closed when they are dropped."""

    def _next_order(self) -> int:
        self._created += 1
        order = self._created << 20 | self.burst
        self.burst += 1
        return order

    def _stillborn(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task that never runs, for clean-up code of a run that is being suspended."""
        coro.close()
        never = _never()
        task: asyncio.Task[Any] = asyncio.Task(never, loop=self)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
        never.close()
        return task

    def finalize_generator(self, generator: Any) -> None:
        """Closes an async generator that was dropped before its end, at once and in place: it cannot wait here."""
        before = self.closing
        self.closing = before or "generator"
        misuse: Misuse | None = None
        try:
            with Running(self):
                generator.aclose().send(None)
            misuse = UnawaitedOperation(_DROPPED.format(generator=_name_of(generator)))
        except (StopIteration, RunSuspended, GeneratorExit):
            pass
        except UnawaitedOperation as error:
            misuse = error
        except Exception as error:  # noqa: BLE001  nobody is there to take it
            self.report(f"{_name_of(generator)} raised in its clean-up", error)
        finally:
            self.closing = before
        if misuse is not None:
            self.fail(misuse)


class Running:
    """Makes the loop the running one of this thread, also inside another loop, and puts things back afterwards."""

    __slots__ = ("hooks", "loop", "outer")

    def __init__(self, loop: WorkflowLoop) -> None:
        self.loop = loop

    def __enter__(self) -> None:
        self.outer = running_loop()
        self.hooks = sys.get_asyncgen_hooks()
        events._set_running_loop(self.loop)  # noqa: SLF001
        sys.set_asyncgen_hooks(None, self.loop.finalize_generator)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.set_asyncgen_hooks(*self.hooks)
        events._set_running_loop(self.outer)  # noqa: SLF001


_BUSY = (
    "workflow code keeps itself busy without waiting for an operation (a loop around asyncio.sleep(0)?). "
    "Wait for what it polls: a message, an asyncio.Event, or await ctx.sleep(...)."
)
_DROPPED = (
    "the async generator {generator} was left before its end and waits in its clean-up, where nothing can await it. "
    "Use: async with contextlib.aclosing(generator) as items: ..."
)


def dropped_generator() -> UnawaitedOperation:
    """The error of an operation in the clean-up of a dropped async generator."""
    return UnawaitedOperation(_DROPPED.format(generator="whose clean-up calls an operation"))


async def _never() -> None: ...


def _name_of(generator: object) -> str:
    return str(getattr(generator, "__qualname__", generator))
