"""Blocks: loops, retried blocks, blocks whose failure is a value, and polling."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeVar, cast, overload

from durable.context.part import Op, Part, close_coroutine
from durable.model.duration import Duration
from durable.model.ids import check_name
from durable.ops.loop import HISTORY, loop
from durable.options import MISSING, RETRIES, Backoff, Step, count
from durable.values import Break, Continue, Failed, Ok, Source

if TYPE_CHECKING:
    from durable.context.context import Context

S = TypeVar("S")
T = TypeVar("T")


class Blocks(Part):
    """The part of the context that runs blocks of operations."""

    @overload
    def loop(self, name: str, body: Callable[[Context], Awaitable[None]], /, *, history: int = 20) -> Op[Never]: ...
    @overload
    def loop(
        self, name: str, body: Callable[[Context], Awaitable[Break[T] | Continue[None]]], /, *, history: int = 20
    ) -> Op[T]: ...
    @overload
    def loop(
        self, name: str, body: Callable[[Context, S], Awaitable[Continue[S]]], /, *, state: S, history: int = 20
    ) -> Op[Never]: ...
    @overload
    def loop(
        self,
        name: str,
        body: Callable[[Context, S], Awaitable[Break[T] | Continue[S]]],
        /,
        *,
        state: S,
        history: int = 20,
    ) -> Op[T]: ...
    def loop(self, name: str, body: Any, /, *, state: Any = MISSING, history: int = HISTORY) -> Any:
        """Runs the body until it returns `Break(value)`, and gives that value.

        `Continue(state)` goes on with another state, the only thing that passes from one iteration to the next: past
        iterations are not executed again. Every `history` iterations the progress is recorded.
        """
        if not callable(body):
            close_coroutine(body)
            raise TypeError(
                f"ctx.loop() takes a function of the context, and of the state if there is one, not {body!r}"
            )
        name = check_name("name of a loop", name)
        interval = count("ctx.loop(history=...)", history, minimum=1)
        known = cast("Callable[..., Awaitable[Any]]", body)
        return loop(self._execution, name, known, functools.partial(known, self), state=state, history=interval)

    def try_block(
        self,
        name: str,
        body: Callable[[Context], Awaitable[T]],
        /,
        *,
        catch: Sequence[Source] = ("step", "join", "race", "block"),
    ) -> Op[Ok[T] | Failed]:
        """As `try_step`, for a block: failures of operations are returned, errors of the block's own code raised."""
        self._missing("ctx.try_block")

    def retrying(
        self,
        name: str,
        body: Callable[[Context], Awaitable[T]],
        /,
        *,
        retries: int = RETRIES,
        backoff: Backoff = Backoff(),  # noqa: B008 - a frozen value
    ) -> Op[T]:
        """Runs a whole block of operations again when it fails."""
        self._missing("ctx.retrying")

    @overload
    def wait_until(
        self,
        name: str | Step,
        check: Callable[[], Awaitable[T | None]],
        /,
        *,
        every: Backoff | Duration,
        timeout: Duration | None = None,
        attempts: int | None = None,
    ) -> Op[T]: ...
    @overload
    def wait_until(
        self,
        name: str | Step,
        check: Callable[[], T | None],
        /,
        *,
        every: Backoff | Duration,
        timeout: Duration | None = None,
        attempts: int | None = None,
    ) -> Op[T]: ...
    @overload
    def wait_until(
        self,
        name: str | Step,
        check: Callable[[S], Awaitable[Break[T] | Continue[S]]],
        /,
        *,
        state: S,
        every: Backoff | Duration,
        timeout: Duration | None = None,
        attempts: int | None = None,
    ) -> Op[T]: ...
    @overload
    def wait_until(
        self,
        name: str | Step,
        check: Callable[[S], Break[T] | Continue[S]],
        /,
        *,
        state: S,
        every: Backoff | Duration,
        timeout: Duration | None = None,
        attempts: int | None = None,
    ) -> Op[T]: ...
    def wait_until(self, name: str | Step, check: Any, /, **_options: Any) -> Any:
        """Runs a check step again and again until it returns something true, and gives that."""
        self._missing("ctx.wait_until")
