"""Blocks: loops, retried blocks, blocks whose failure is a value, and polling."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Never, TypeVar, cast, overload

from durable.context.part import Op, Part, close_coroutine
from durable.model.duration import Duration, optional_seconds, seconds
from durable.model.ids import check_name
from durable.ops.functions import known_function, positional_arguments
from durable.ops.loop import HISTORY, loop
from durable.ops.retrying import retrying
from durable.ops.try_block import try_block
from durable.ops.wait_until import Polling, wait_until
from durable.options import MISSING, RETRIES, Backoff, Step, count
from durable.values import Break, Continue, Failed, Ok, Source

if TYPE_CHECKING:
    from durable.context.context import Context

S = TypeVar("S")
T = TypeVar("T")

SOURCES: Final[tuple[Source, ...]] = ("step", "join", "race", "block", "child", "callback", "entity")


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
        known = _body("ctx.loop", body, "a function of the context, and of the state if there is one")
        name = check_name("name of a loop", name)
        counts = positional_arguments(known)
        if state is MISSING and counts is not None and counts[0] > 1:
            raise TypeError(f'the body of loop "{name}" takes a state and there is none: add state=... to ctx.loop()')
        if state is not MISSING and counts is not None and counts[1] < 2:
            raise TypeError(
                f'the body of loop "{name}" takes no state: give it a second parameter, or leave out state=...'
            )
        interval = count("ctx.loop(history=...)", history, minimum=1)
        return loop(self._execution, name, known, functools.partial(known, self), state=state, history=interval)

    def try_block(
        self,
        name: str,
        body: Callable[[Context], Awaitable[T]],
        /,
        *,
        catch: Sequence[Source] = SOURCES,
    ) -> Op[Ok[T] | Failed]:
        """As `try_step`, for a block: failures of operations are returned, errors of the block's own code raised.

        `catch` says whose failures are returned: all of them by default. A failure that asks for a rollback
        is never kept here.
        """
        known = _body("ctx.try_block", body, "a function of the context")
        unknown = [source for source in catch if source not in SOURCES]
        if isinstance(catch, str) or unknown:
            raise ValueError(f"ctx.try_block(catch=...) must be a list of {', '.join(SOURCES)}, not {catch!r}")
        name = check_name("name of a block", name)
        return try_block(self._execution, name, functools.partial(known, self), catch)

    def retrying(
        self,
        name: str,
        body: Callable[[Context], Awaitable[T]],
        /,
        *,
        retries: int = RETRIES,
        backoff: Backoff = Backoff(),  # noqa: B008 - a frozen value
    ) -> Op[T]:
        """Runs a whole block of operations again when it fails, `retries` times at most, and gives its value.

        Every round has a scope of its own, `name[0]/`, `name[1]/` ...; before each but the first it sleeps as `backoff`
        says. Rounds that have failed are not executed again on replay. What no repetition can mend ends it at once: a
        step that failed as `critical`, NonRetryableError, and whatever asks for a rollback. When the rounds are used
        up, the error of the last one is raised.
        """
        known = functools.partial(_body("ctx.retrying", body, "a function of the context"), self)
        name = check_name("name of a block", name)
        return retrying(
            self._execution, name, known, retries=count("ctx.retrying(retries=...)", retries), backoff=backoff
        )

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
    def wait_until(
        self,
        name: str | Step,
        check: Any,
        /,
        *,
        every: Backoff | Duration,
        state: Any = MISSING,
        timeout: Duration | None = None,
        attempts: int | None = None,
    ) -> Any:
        """Runs a check step again and again until it returns something true, and gives that.

        With `state` the check gets it, and returns `Continue(state)` to be asked again or `Break(value)` to end. A
        `Step` in place of the name is how each check is tried. `every` is the pause between two checks; the last one is
        cut short by the deadline, at which there is one more check.

        Raises:
            WaitTimeout: `timeout` has passed, or `attempts` checks were not content.
            StepFailed: A check failed.
        """
        known = _body("ctx.wait_until", check, "a function that is run as a step")
        policy = name if isinstance(name, Step) else Step(name)
        label = policy.name or known_function(known).name
        polling = Polling(
            every=_pauses(every),
            timeout=optional_seconds(timeout, "ctx.wait_until(timeout=...)"),
            attempts=None if attempts is None else count("ctx.wait_until(attempts=...)", attempts, minimum=1),
            policy=policy,
        )
        return wait_until(self._execution, label, known, polling, state)


def _body(operation: str, body: object, what: str) -> Callable[..., Awaitable[Any]]:
    if not callable(body):
        close_coroutine(body)
        raise TypeError(f"{operation}() takes {what}, not {body!r}")
    return cast("Callable[..., Awaitable[Any]]", body)


def _pauses(every: Backoff | Duration) -> Backoff:
    if isinstance(every, Backoff):
        if not every.base:
            raise ValueError("ctx.wait_until(every=...) needs a pause between two checks")
        return every
    pause = seconds(every, "ctx.wait_until(every=...)", minimum=0.001)
    return Backoff(pause, factor=1.0, max=pause)
