"""Branches: joins, races and maps."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, overload

from typing_extensions import TypeIs, TypeVar

from durable.context.part import Op, Part
from durable.model.ids import check_name
from durable.values import MapResult, Winner

if TYPE_CHECKING:
    from durable.context.context import Context

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")

Settle = Literal["success", "first"]


@dataclass(frozen=True, init=False, eq=False)
class Branch(Generic[T_co]):
    """One named branch of a join or race; arguments are bound here, so no closure over a loop's variable is needed."""

    key: str
    fn: Callable[[Context], Awaitable[T_co]]

    def __init__(
        self,
        key: str,
        fn: Callable[Concatenate[Context, P], Awaitable[T_co]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        object.__setattr__(self, "key", check_name("branch key", key))
        object.__setattr__(self, "fn", _bound(fn, args, kwargs))

    def won(self, winner: Winner[Any], /) -> TypeIs[Winner[T_co]]:
        """Whether this branch decided the race; the checkers know the type of the value from then on."""
        return winner.key == self.key


def _bound(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
    if not callable(fn):
        raise TypeError(f"Branch() takes a function that gets the context first, not {fn!r}")

    @functools.wraps(fn)
    def call(ctx: Any) -> Any:
        return fn(ctx, *args, **kwargs)

    return call


class Branching(Part):
    """The part of the context that runs branches side by side."""

    @overload
    def join(self, name: str, a: Branch[A], b: Branch[B], /) -> Op[tuple[A, B]]: ...
    @overload
    def join(self, name: str, a: Branch[A], b: Branch[B], c: Branch[C], /) -> Op[tuple[A, B, C]]: ...
    @overload
    def join(self, name: str, a: Branch[A], b: Branch[B], c: Branch[C], d: Branch[D], /) -> Op[tuple[A, B, C, D]]: ...
    @overload
    def join(
        self, name: str, a: Branch[A], b: Branch[B], c: Branch[C], d: Branch[D], e: Branch[E], /
    ) -> Op[tuple[A, B, C, D, E]]: ...
    @overload
    def join(
        self, name: str, a: Branch[A], b: Branch[B], c: Branch[C], d: Branch[D], e: Branch[E], f: Branch[F], /
    ) -> Op[tuple[A, B, C, D, E, F]]: ...
    @overload
    def join(self, name: str, branches: Mapping[str, Callable[[Context], Awaitable[T]]], /) -> Op[dict[str, T]]: ...
    @overload
    def join(self, name: str, /, *branches: Branch[T]) -> Op[tuple[T, ...]]: ...
    def join(self, name: str, /, *branches: Any) -> Any:
        """Runs all branches side by side, cuts none short, and gives their results.

        Raises:
            JoinError: All have settled and some failed; it holds every failure.
        """
        self._missing("ctx.join")

    @overload
    def race(
        self, name: str, a: Branch[A], b: Branch[B], /, *, settle: Settle = "success"
    ) -> Op[Winner[A] | Winner[B]]: ...
    @overload
    def race(
        self, name: str, a: Branch[A], b: Branch[B], c: Branch[C], /, *, settle: Settle = "success"
    ) -> Op[Winner[A] | Winner[B] | Winner[C]]: ...
    @overload
    def race(
        self, name: str, branches: Mapping[str, Callable[[Context], Awaitable[T]]], /, *, settle: Settle = "success"
    ) -> Op[Winner[T]]: ...
    @overload
    def race(self, name: str, /, *branches: Branch[T], settle: Settle = "success") -> Op[Winner[T]]: ...
    def race(self, name: str, /, *branches: Any, settle: Settle = "success") -> Any:
        """Runs all branches side by side until the first succeeds; the others are cancelled.

        With `settle="first"` the first that settles decides, a failure included.

        Raises:
            RaceError: All failed.
        """
        self._missing("ctx.race")

    def map(
        self,
        name: str,
        items: Iterable[I],
        fn: Callable[[Context, I], Awaitable[T]],
        /,
        *,
        concurrency: int = 10,
        key: Callable[[I], str] | None = None,
    ) -> Op[list[T]]:
        """Runs the function for every item, `concurrency` at a time, and gives the results in the items' order."""
        self._missing("ctx.map")

    def try_map(
        self,
        name: str,
        items: Iterable[I],
        fn: Callable[[Context, I], Awaitable[T]],
        /,
        *,
        concurrency: int = 10,
        tolerate: int | None = None,
        enough: int | None = None,
        key: Callable[[I], str] | None = None,
    ) -> Op[MapResult[T]]:
        """As `map`, with every item's outcome; ends early when `enough` items have succeeded."""
        self._missing("ctx.try_map")
