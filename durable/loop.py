"""The event loop of workflow code: a queue of callbacks and nothing else, so that every replay goes the same way."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from asyncio import events, tasks
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from durable.errors import BusyLoop, Misuse, NotAllowedInWorkflow, RunSuspended, UnawaitedOperation

if TYPE_CHECKING:
    from contextvars import Context
    from types import CodeType, FrameType, TracebackType

running_loop = events._get_running_loop  # noqa: SLF001  the public one raises where there is none

MAX_CALLBACKS: Final = 1_000_000
"""Callbacks without a result in between: more than any sensible program needs, and about a second."""

Closing = Literal["suspended", "generator"]


class Handle:
    """What `call_soon` answers: a callback that has not run yet and may be cancelled."""

    __slots__ = ("__weakref__", "args", "callback", "context")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context

    def cancel(self) -> None:
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.callback is None


class WorkflowTask(asyncio.Task[Any]):
    """A task whose hash is its place in the order of creation.

    TaskGroup and asyncio.wait keep tasks in sets; by address they would be cancelled, and seen as done, in another
    order in every process. The low bits are the index among the tasks made in the current callback, because a set's
    order must not depend on how many tasks other code has made before.
    """

    __slots__ = ("context", "number", "order")
    context: Context
    number: int
    order: int

    def __hash__(self) -> int:
        return self.order

    def cancel(self, msg: Any | None = None) -> bool:
        loop = self.get_loop()
        assert isinstance(loop, WorkflowLoop)
        loop.cancelled_something = True
        return super().cancel(msg)


class WorkflowFuture(asyncio.Future[Any]):
    """A future that hashes as a WorkflowTask does."""

    __slots__ = ("order",)
    order: int

    def __hash__(self) -> int:
        return self.order


class MakeTimer(Protocol):
    """Makes a durable timer of what `call_at` is given; it has the methods of asyncio.TimerHandle."""

    def __call__(self, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> Any: ...


class WorkflowLoop(asyncio.AbstractEventLoop):
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
        self.burst = 0
        self.reports: list[str] = []
        self.max_callbacks = MAX_CALLBACKS
        self.tasks: dict[int, WorkflowTask] = {}
        self._make_timer = make_timer
        self._created = 0
        self._prune_at = 64

    def fail(self, misuse: Misuse) -> Misuse:
        """Stops the loop after the current callback; the first misuse counts."""
        if self.closing is None and self.misuse is None:
            self.misuse = misuse
        return misuse

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
        """Notes what a person should read in the log."""
        if self.closing != "suspended" or error is not None:
            self.reports.append(what if error is None else f"{what}: {error!r}")

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
        return self._make_timer(when, callback, args, contextvars.copy_context() if context is None else context)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
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
        if sys._getframe(1).f_code in _ENSURE_FUTURE:  # noqa: SLF001
            self._refuse_set_order(sys._getframe(1))  # noqa: SLF001
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

    def _refuse_set_order(self, frame: FrameType) -> None:
        """Refuses tasks that `as_completed` makes: it takes coroutines out of a set, so they would start in any order."""
        caller: FrameType | None = frame
        while caller is not None and caller.f_code in _ENSURE_FUTURE:
            caller = caller.f_back
        if caller is None or caller.f_code not in _AS_COMPLETED:
            return
        for maker in (caller, caller.f_back):
            _close_coroutines(maker)
        raise self.fail(
            NotAllowedInWorkflow(
                "asyncio.as_completed over coroutines",
                "it would start them in the order of a set. Create the tasks first: "
                "asyncio.as_completed([asyncio.create_task(c) for c in coroutines])",
            )
        )

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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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


def _nested(code: CodeType) -> set[CodeType]:
    return {code} | {const for const in code.co_consts if hasattr(const, "co_code")}


def _as_completed_codes() -> set[CodeType]:
    iterator = getattr(tasks, "_AsCompletedIterator", None)  # 3.13
    codes = _nested(tasks.as_completed.__code__)
    return codes if iterator is None else codes | _nested(iterator.__init__.__code__)


_ENSURE_FUTURE = {
    function.__code__ for function in (getattr(tasks, "_ensure_future", None), tasks.ensure_future) if function is not None
}
_AS_COMPLETED = _as_completed_codes()


def _close_coroutines(frame: FrameType | None) -> None:
    """Closes what will never run, so that no "never awaited" warning distracts from the error."""
    if frame is None:
        return
    for value in frame.f_locals.values():
        if isinstance(value, (list, tuple, set)):
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(item, Coroutine):
                    item.close()


_REFUSED = {
    "threads and executors": "run_in_executor set_default_executor call_soon_threadsafe shutdown_default_executor",
    "network I/O": "getaddrinfo getnameinfo create_connection create_server create_unix_connection create_unix_server "
    "create_datagram_endpoint sendfile start_tls connect_accepted_socket sock_recv sock_recv_into sock_recvfrom "
    "sock_recvfrom_into sock_sendall sock_sendto sock_connect sock_accept sock_sendfile",
    "I/O": "connect_read_pipe connect_write_pipe subprocess_shell subprocess_exec add_reader remove_reader add_writer "
    "remove_writer",
    "signals": "add_signal_handler remove_signal_handler",
    "the event loop itself": "set_task_factory set_exception_handler set_debug run_forever run_until_complete stop close",
}


def _refusal(method: str, what: str) -> Callable[..., Any]:
    def refuse(self: WorkflowLoop, *args: Any, **_kwargs: Any) -> Any:
        for argument in args:
            if isinstance(argument, Coroutine):
                argument.close()
        if what == "the event loop itself":
            raise self.fail(NotAllowedInWorkflow(f"loop.{method}()", "it runs on a loop of its own; leave the loop alone"))
        raise self.fail(NotAllowedInWorkflow(f"{what} (loop.{method})"))

    refuse.__name__ = method
    return refuse


for _what, _methods in _REFUSED.items():
    for _method in _methods.split():
        setattr(WorkflowLoop, _method, _refusal(_method, _what))
