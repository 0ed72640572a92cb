"""Branches: joins, races and maps."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, cast, overload

from typing_extensions import TypeIs, TypeVar

from durable.context.part import Op, Part, close_coroutine
from durable.errors import DuplicateName
from durable.model.ids import check_name
from durable.ops.branches import Body
from durable.ops.join import join
from durable.ops.map import Items, map_items
from durable.ops.operation import Block
from durable.ops.race import race
from durable.ops.try_map import Bounds, try_map
from durable.options import count
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
    fn: Callable[..., Awaitable[T_co]]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __init__(
        self,
        key: str,
        fn: Callable[Concatenate[Context, P], Awaitable[T_co]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        if not callable(fn):
            raise TypeError(f"Branch() takes a function that gets the context first, not {fn!r}")
        object.__setattr__(self, "key", check_name("branch key", key))
        object.__setattr__(self, "fn", fn)
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "kwargs", kwargs)

    def won(self, winner: Winner[Any], /) -> TypeIs[Winner[T_co]]:
        """Whether this branch decided the race; the checkers know the type of the value from then on."""
        return winner.key == self.key


def _bodies(operation: str, ctx: Any, branches: tuple[Any, ...]) -> dict[str, Body]:
    if len(branches) == 1 and isinstance(branches[0], Mapping):
        functions = cast("Mapping[str, Callable[..., Any]]", branches[0])
        return {check_name("branch key", key): _body(operation, ctx, key, fn) for key, fn in functions.items()}
    bodies: dict[str, Body] = {}
    for branch in branches:
        if not isinstance(branch, Branch):
            for other in branches:
                close_coroutine(other)
            raise TypeError(f'{operation}() takes Branch("key", fn, ...) for each branch, not {type(branch).__name__}')
        known = cast("Branch[Any]", branch)
        if known.key in bodies:
            raise DuplicateName(known.key, operation)
        bodies[known.key] = functools.partial(known.fn, ctx, *known.args, **known.kwargs)
    return bodies


def _body(operation: str, ctx: Any, key: str, fn: object) -> Body:
    if not callable(fn):
        close_coroutine(fn)
        raise TypeError(
            f'{operation}() got {type(fn).__name__} for branch "{key}", not a function that takes the context'
        )
    return functools.partial(cast("Callable[..., Awaitable[Any]]", fn), ctx)


class _InOrder(Coroutine[Any, Any, tuple[Any, ...]]):
    """A join whose values come as a tuple. No `async def`: one that is dropped before it begins would hide its join."""

    __slots__ = ("_iterator", "_join")

    def __init__(self, join: Block) -> None:
        self._join = join
        self._iterator: Generator[Any, Any, tuple[Any, ...]] | None = None

    def __await__(self) -> Generator[Any, Any, tuple[Any, ...]]:
        values: dict[str, Any] = yield from self._join.__await__()
        return tuple(values.values())

    def send(self, value: Any) -> Any:
        if self._iterator is None:
            self._iterator = self.__await__()
        return self._iterator.send(value)

    def throw(self, *error: Any) -> Any:
        return (self._join if self._iterator is None else self._iterator).throw(*error)

    def close(self) -> None:
        (self._join if self._iterator is None else self._iterator).close()

    if not TYPE_CHECKING:  # to a type checker it has no other attributes

        def __getattr__(self, name: str) -> Any:
            return getattr(self._join, name)

    @property
    def cr_frame(self) -> Any:
        """As of the join itself, for whoever looks whether it has begun."""
        return self._join.cr_frame

    @property
    def cr_await(self) -> Any:
        """As of the join itself."""
        return self._join.cr_await


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
        bodies = _bodies("ctx.join", self, branches)
        block = join(self._execution, check_name("name of a join", name), bodies)
        return block if branches and isinstance(branches[0], Mapping) else _InOrder(block)

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
        if settle not in {"success", "first"}:
            raise ValueError(f'ctx.race(settle=...) must be "success" or "first", not {settle!r}')
        bodies = _bodies("ctx.race", self, branches)
        return race(self._execution, check_name("name of a race", name), bodies, settle)

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
        name, bound = self._mapping("ctx.map", name, fn)
        size = count("ctx.map(concurrency=...)", concurrency, minimum=1)
        return map_items(self._execution, name, items, bound, concurrency=size, key=key)

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
        """As `map`, with every item's outcome instead of the first failure; items that raise are failures too.

        Args:
            name: Unique in its scope.
            items: Looked at once, when this is called.
            fn: Gets the context and an item.
            concurrency: How many items run at a time.
            tolerate: So many items may fail; None tolerates all failures.
            enough: The map ends when so many items have succeeded; the others are `Skipped`.
            key: Names an item in the history; its index by default.

        Raises:
            MapError: More items have failed than `tolerate` says; it has the result so far.
        """
        bounds = Bounds(
            concurrency=count("ctx.try_map(concurrency=...)", concurrency, minimum=1),
            tolerate=None if tolerate is None else count("ctx.try_map(tolerate=...)", tolerate),
            enough=None if enough is None else count("ctx.try_map(enough=...)", enough, minimum=1),
        )
        name, bound = self._mapping("ctx.try_map", name, fn)
        return try_map(self._execution, name, Items.of(name, items, key), bound, bounds)

    def _mapping(
        self, operation: str, name: str, fn: Callable[[Context, I], Awaitable[T]]
    ) -> tuple[str, Callable[[I], Awaitable[T]]]:
        if not callable(fn):
            raise TypeError(f"{operation}() takes a function of the context and an item, not {fn!r}")
        return check_name("name of a map", name), functools.partial(cast("Callable[..., Awaitable[T]]", fn), self)
