"""What authors say about an operation: retries, delays, limits. Frozen values without I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, Final, Generic, ParamSpec, final

from typing_extensions import TypeForm, TypeVar

from durable.model.duration import Duration, optional_seconds, seconds
from durable.model.entry import FailureKind
from durable.model.ids import check_name
from durable.model.lane import PRIORITY
from durable.values import NotDone, Ok

P = ParamSpec("P")
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


@final
class Missing:
    """The type of `MISSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()
"""Nothing was given, where None is a value that could be."""


def _set(value: object, name: str, content: object) -> None:
    object.__setattr__(value, name, content)


RETRIES: Final = 3
STEP_TIMEOUT: Final = 30.0
CATCHABLE: Final[tuple[FailureKind, ...]] = ("critical", "timeout", "exhausted", "rollback")
CAUGHT_BY_DEFAULT: Final[tuple[FailureKind, ...]] = ("critical", "timeout", "exhausted")


@dataclass(frozen=True, slots=True, init=False)
class Backoff:
    """Delays between attempts: `base` first, times `factor` after each, at most `max`."""

    base: float
    factor: float
    max: float
    jitter: bool

    def __init__(
        self,
        base: Duration = 0.1,
        *,
        factor: float = 2.0,
        max: Duration = 30.0,
        jitter: bool = False,
    ) -> None:
        if not 1.0 <= factor < float("inf"):
            raise ValueError(f"Backoff(factor=...) must be 1 or more, not {factor}")
        _set(self, "base", seconds(base, "Backoff(base)", minimum=0.0))
        _set(self, "factor", float(factor))
        _set(self, "max", seconds(max, "Backoff(max=...)", minimum=0.0))
        _set(self, "jitter", jitter)
        if self.base > self.max:
            raise ValueError(
                f"Backoff({self.base:g} s) is longer than its max ({self.max:g} s): say Backoff(..., max=...)"
            )

    def delay_after(self, attempt: int, key: str = "") -> float:
        """Seconds to wait after failed attempt `attempt` (the first is 1).

        With jitter it is a share between one half and the whole of the delay, always the same for the same `key`
        and attempt, so that a replay and another container agree.
        """
        try:
            delay = min(self.max, self.base * self.factor ** (attempt - 1))
        except OverflowError:
            delay = self.max
        if not self.jitter:
            return delay
        digest = hashlib.blake2b(f"{key}@{attempt}".encode(), digest_size=4).digest()
        return delay * (0.5 + int.from_bytes(digest, "big") / 2**33)


DEFAULT_BACKOFF: Final = Backoff()


@dataclass(frozen=True, slots=True, init=False)
class Rate:
    """At most `limit` in every `per`."""

    limit: int
    per: float

    def __init__(self, limit: int, *, per: Duration) -> None:
        if limit < 1:
            raise ValueError(f"Rate(limit) must be 1 or more, not {limit}")
        _set(self, "limit", limit)
        _set(self, "per", seconds(per, "Rate(per=...)", minimum=0.001))


@dataclass(frozen=True, slots=True, init=False)
class Batch:
    """Collects events into one run: up to `size` of them, or those of a `window` that opens with the first."""

    size: int
    window: float

    def __init__(self, size: int, *, window: Duration) -> None:
        if size < 1:
            raise ValueError(f"Batch(size) must be 1 or more, not {size}")
        _set(self, "size", size)
        _set(self, "window", seconds(window, "Batch(window=...)", minimum=0.0))


@dataclass(frozen=True, slots=True, init=False)
class Step:
    """How a step is tried. A reusable policy: without a name the step takes its function's.

    `retries` are further attempts after the first (3 by default; an at-most-once step has none). `timeout` is that of
    one attempt; a body cannot be stopped, so one that runs on is left behind and its result dropped. A timeout is
    final unless `retry_on_timeout`. `no_retry` and `retry_if` say which errors are not worth another attempt. `catch`
    are the kinds of failure that `ctx.try_step` returns instead of raising. `result` is the type of the result where
    the function has no annotation. An `ephemeral` step's record is written with the next one of its scope.
    """

    name: str | None
    retries: int
    backoff: Backoff
    timeout: float | None
    timeout_is_ours: bool
    retry_on_timeout: bool
    no_retry: tuple[type[Exception], ...]
    retry_if: Callable[[Exception], bool] | None
    at_most_once: bool
    ephemeral: bool
    catch: tuple[FailureKind, ...]
    summary: str | None
    result: Any
    verify_fn: Callable[..., Any] | None = field(default=None)
    undo_fn: Callable[..., Any] | None = field(default=None)

    def __init__(
        self,
        name: str | None = None,
        /,
        *,
        retries: int | None = None,
        backoff: Backoff = DEFAULT_BACKOFF,
        timeout: Duration | Missing | None = MISSING,
        retry_on_timeout: bool = False,
        no_retry: tuple[type[Exception], ...] = (),
        retry_if: Callable[[Exception], bool] | None = None,
        at_most_once: bool = False,
        ephemeral: bool = False,
        catch: Sequence[FailureKind] = CAUGHT_BY_DEFAULT,
        summary: str | None = None,
        result: TypeForm[Any] | Missing = MISSING,
    ) -> None:
        _set(self, "name", None if name is None else check_name("step name", name))
        _set(self, "retries", _retries(retries, at_most_once=at_most_once))
        _set(self, "backoff", backoff)
        chosen = STEP_TIMEOUT if isinstance(timeout, Missing) else timeout
        _set(self, "timeout", optional_seconds(chosen, "Step(timeout=...)", minimum=0.001))
        _set(self, "timeout_is_ours", isinstance(timeout, Missing))
        _set(self, "retry_on_timeout", retry_on_timeout)
        _set(self, "no_retry", _error_types(no_retry))
        _set(self, "retry_if", retry_if)
        _set(self, "at_most_once", at_most_once)
        _set(self, "ephemeral", ephemeral)
        _set(self, "catch", _kinds(catch))
        _set(self, "summary", summary)
        _set(self, "result", result)
        _set(self, "verify_fn", None)
        _set(self, "undo_fn", None)
        if at_most_once and retry_on_timeout:
            raise ValueError("Step(at_most_once=True) is never run again, so retry_on_timeout contradicts it")
        if at_most_once and ephemeral:
            raise ValueError("Step(at_most_once=True) needs its record before it runs, so ephemeral contradicts it")

    def named(self, name: str, /) -> Step:
        """The same policy under this name."""
        return _changed(self, name=check_name("step name", name))

    def undo(self, fn: Callable[Concatenate[T, P], object], /) -> Undoable[T, P]:
        """Registers the rollback: called with the step's result, then the step's own arguments."""
        return Undoable[T, P](_changed(self, undo_fn=_function("undo", fn)))

    def verify(self, fn: Callable[P, Ok[T] | NotDone], /) -> Undoable[T, P]:
        """Registers the question asked about an interrupted at-most-once step, with the step's own arguments.

        `Ok(result)` makes the step return that; `NotDone()` lets it run once more.
        """
        if not self.at_most_once:
            raise ValueError("Step.verify(fn) is asked about interrupted at-most-once steps: add at_most_once=True")
        return Undoable[T, P](_changed(self, verify_fn=_function("verify", fn)))


@dataclass(frozen=True)
class Undoable(Generic[T_contra, P]):
    """A step's policy together with functions that must fit the step: `undo`, `verify`."""

    step: Step

    def undo(self, fn: Callable[Concatenate[T_contra, P], object], /) -> Undoable[T_contra, P]:
        """Registers the rollback: called with the step's result, then the step's own arguments."""
        return Undoable[T_contra, P](self.step.undo(fn).step)

    def verify(self, fn: Callable[P, Ok[T_contra] | NotDone], /) -> Undoable[T_contra, P]:
        """Registers the question asked about an interrupted at-most-once step, with the step's own arguments."""
        return Undoable[T_contra, P](self.step.verify(fn).step)


@dataclass(frozen=True, slots=True, init=False)
class Call:
    """How one call of a remote step is made; what is not said here is the remote step's own.

    `timeout` is that of one attempt, from when a worker begins with it; `heartbeat` its longest silence;
    `pickup_timeout` how long it waits for a worker (a day by default); `total` the time for all attempts and the pauses
    between them. `queue` names who performs it, and whose limits apply. A higher `priority` goes first there.
    """

    name: str | None
    queue: str | None
    priority: int
    retries: int | None
    backoff: Backoff | None
    timeout: float | None
    heartbeat: float | None
    pickup_timeout: float | None
    total: float | None

    def __init__(
        self,
        name: str | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int = 0,
        retries: int | None = None,
        backoff: Backoff | None = None,
        timeout: Duration | None = None,
        heartbeat: Duration | None = None,
        pickup_timeout: Duration | None = None,
        total: Duration | None = None,
    ) -> None:
        _set(self, "name", None if name is None else check_name("call name", name))
        _set(self, "queue", None if queue is None else check_name("queue name", queue))
        _set(self, "priority", _priority(priority))
        _set(self, "retries", None if retries is None else count("Call(retries=...)", retries))
        _set(self, "backoff", backoff)
        _set(self, "timeout", optional_seconds(timeout, "Call(timeout=...)", minimum=0.001))
        _set(self, "heartbeat", optional_seconds(heartbeat, "Call(heartbeat=...)", minimum=0.001))
        _set(self, "pickup_timeout", optional_seconds(pickup_timeout, "Call(pickup_timeout=...)", minimum=0.001))
        _set(self, "total", optional_seconds(total, "Call(total=...)", minimum=0.001))


def count(what: str, value: int, *, minimum: int = 0) -> int:
    """Gives the count back; ValueError where it is too small, TypeError where it is no whole number."""
    if isinstance(value, bool) or not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if value < minimum:
        raise ValueError(f"{what} must be {minimum} or more, not {value}")
    return value


def _priority(priority: int) -> int:
    if count("Call(priority=...)", priority, minimum=-PRIORITY) > PRIORITY:
        raise ValueError(f"Call(priority=...) must be {PRIORITY} or less, not {priority}")
    return priority


def _retries(retries: int | None, *, at_most_once: bool) -> int:
    if retries is None:
        return 0 if at_most_once else RETRIES
    if at_most_once and retries:
        raise ValueError(
            f"Step(at_most_once=True, retries={retries}) contradicts itself: an at-most-once step is not run again. "
            "Leave retries out, or leave at_most_once out and use step_context().idempotency_key."
        )
    return count("Step(retries=...)", retries)


def _error_types(types: object) -> tuple[type[Exception], ...]:
    if not isinstance(types, tuple) or not all(isinstance(t, type) and issubclass(t, Exception) for t in types):  # pyright: ignore[reportUnknownVariableType]
        raise TypeError(f"Step(no_retry=...) must be a tuple of exception classes, not {types!r}")
    return types  # pyright: ignore[reportUnknownVariableType]


def _kinds(kinds: Sequence[FailureKind]) -> tuple[FailureKind, ...]:
    unknown = [kind for kind in kinds if kind not in CATCHABLE]
    if isinstance(kinds, str) or unknown:
        raise ValueError(f"Step(catch=...) must be a list of {', '.join(CATCHABLE)}, not {kinds!r}")
    return tuple(kinds)


def _function(what: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    if not callable(fn):
        raise TypeError(f"Step.{what}() takes a function, not {fn!r}")
    return fn


def _changed(step: Step, **changes: Any) -> Step:
    copy = object.__new__(Step)
    for name in Step.__slots__:
        _set(copy, name, changes.get(name, getattr(step, name)))
    return copy
