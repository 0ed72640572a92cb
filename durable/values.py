"""What operations return and what bodies of blocks return. Frozen values without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, NoReturn, overload

from typing_extensions import TypeVar

from durable import failures
from durable.errors import ErrorInfo
from durable.model.entry import FailureKind

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S_co = TypeVar("S_co", covariant=True, default=None)

Source = Literal["step", "join", "race", "block", "child", "callback", "entity"]


# Generic values have no slots: frozen ones with slots fail when they are made as `Ok[int](3)`.


@dataclass(frozen=True)
class Ok(Generic[T_co]):
    """The operation succeeded."""

    value: T_co

    def unwrap(self) -> T_co:
        """The value; on `Failed` this raises."""
        return self.value


@dataclass(frozen=True, slots=True)
class Failed:
    """The operation failed, and the failure was caught and recorded."""

    kind: FailureKind
    name: str
    attempts: int
    error: ErrorInfo
    source: Source = "step"

    def matches(self, error: type[BaseException], /) -> bool:
        """Whether the error was of this class."""
        return self.error.matches(error)

    def unwrap(self) -> NoReturn:
        """Raises the failure as the operation itself would have."""
        raise failures.step_failed(self.name, self.attempts, self.error, self.kind)


@dataclass(frozen=True, slots=True)
class NotDone:
    """What `verify` answers when the interrupted step had no effect: it is run again."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item of a map that was not finished because `enough` was reached."""


@dataclass(frozen=True, init=False)
class Break(Generic[T_co]):
    """Returned by the body of a loop: the loop ends with this value."""

    value: T_co

    @overload
    def __init__(self: Break[None], /) -> None: ...
    @overload
    def __init__(self, value: T_co, /) -> None: ...
    def __init__(self, value: Any = None, /) -> None:
        object.__setattr__(self, "value", value)


@dataclass(frozen=True, init=False)
class Continue(Generic[S_co]):
    """Returned by the body of a loop: another iteration follows, with this state."""

    state: S_co

    @overload
    def __init__(self: Continue[None], /) -> None: ...
    @overload
    def __init__(self, state: S_co, /) -> None: ...
    def __init__(self, state: Any = None, /) -> None:
        object.__setattr__(self, "state", state)


@dataclass(frozen=True)
class Winner(Generic[T_co]):
    """The branch that decided a race, and its value."""

    key: str
    value: T_co


@dataclass(frozen=True)
class MapResult(Generic[T]):
    """What `ctx.try_map` returns: every item's outcome, in the order of the items."""

    outcomes: list[Ok[T] | Failed | Skipped]

    @property
    def values(self) -> list[T]:
        """The results of the items that succeeded, in order."""
        return [outcome.value for outcome in self.outcomes if isinstance(outcome, Ok)]

    @property
    def failures(self) -> list[tuple[int, Failed]]:
        """The items that failed, each with its index."""
        return [(index, outcome) for index, outcome in enumerate(self.outcomes) if isinstance(outcome, Failed)]


@dataclass(frozen=True)
class Blob(Generic[T]):
    """A large value in the blob store: what travels through the history is this reference."""

    key: str
    size: int


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer decided."""

    decision: Literal["approved", "rejected"]
    reviewer: str
    comment: str = ""
    sections: tuple[tuple[str, str], ...] = ()
