"""What the decorators of an app are to a type checker, and what they see of the place where they stand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, overload

from typing_extensions import TypeVar

from durable.definitions import RemoteStep, Workflow

if TYPE_CHECKING:
    from types import FrameType

    from durable.context import Context

P = ParamSpec("P")
I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")
C_E = TypeVar("C_E", bound=type[Any])


class WorkflowDecorator(Protocol):
    """What `@app.workflow(...)` gives."""

    @overload
    def __call__(self, fn: Callable[[Context], Coroutine[Any, Any, R]], /) -> Workflow[None, R]: ...
    @overload
    def __call__(self, fn: Callable[[Context, I], Coroutine[Any, Any, R]], /) -> Workflow[I, R]: ...


class RemoteStepDecorator(Protocol):
    """What `@app.remote_step(...)` gives."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> RemoteStep[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> RemoteStep[P, R]: ...


class EntityDecorator(Protocol):
    """What `@app.entity(...)` gives."""

    def __call__(self, cls: C_E, /) -> C_E: ...


def module_around(module: Mapping[str, Any]) -> str:
    """The name of the module that has called `module`."""
    frame = _frame_around(module)
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def names_around(fn: Callable[..., Any], module: Mapping[str, Any]) -> Mapping[str, Any]:
    """The local names where a local function, or class, is being registered: its annotations may name classes among them.

    `module` are the global names of whoever asks: its own frames are skipped.
    """
    if "<locals>" not in getattr(fn, "__qualname__", ""):
        return {}
    frame = _frame_around(module)
    return {} if frame is None else frame.f_locals


def _frame_around(module: Mapping[str, Any]) -> FrameType | None:
    frame = inspect.currentframe()
    while frame is not None and (frame.f_globals is module or frame.f_globals is globals()):
        frame = frame.f_back
    return frame
