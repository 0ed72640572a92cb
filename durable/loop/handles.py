"""What the loop hands to asyncio: handles, and tasks and futures that iterate in the same order in every process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from durable.errors import RunCancelled

if TYPE_CHECKING:
    from contextvars import Context


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
        loop: Any = self.get_loop()
        loop.cancelled_something = True
        if self.number in loop.struck:
            return True
        return super().cancel(msg)


class WorkflowFuture(asyncio.Future[Any]):
    """A future that hashes as a WorkflowTask does."""

    __slots__ = ("order",)
    order: int

    def __hash__(self) -> int:
        return self.order

    def result(self) -> Any:
        """Asked by a task that wakes up; when the whole run is cancelled, the task learns just that."""
        loop: Any = self.get_loop()
        if loop.cancelling_run and self.cancelled():
            raise RunCancelled("the run is cancelled")
        return super().result()
