"""A map: one function over many items, a few at a time.

| state     | what happens                                                                          |
|-----------|---------------------------------------------------------------------------------------|
| called    | claims its name                                                                       |
| running   | at most `concurrency` items are tasks; the next starts when one ends                  |
| failed    | the first failure cancels the items that run, waits for their clean-up, and is raised |
| cancelled | the same with the cancellation                                                        |
| over      | the values in the order of the items                                                  |

It has no entry of its own: the operations of its items are in the history, under `name/0/`, `name/1/` or `name/<key>/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from durable.errors import DuplicateName
from durable.journal import Journal, Scope
from durable.model.location import escape
from durable.ops.branches import Branches
from durable.ops.operation import Block, Host

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Items:
    """What a map runs over, with the names of the items' scopes."""

    values: list[Any]
    names: list[str]
    keys: str
    """What every entry in an item is checked for: all names in one text, or how many items there are."""

    @classmethod
    def of(cls, name: str, items: Iterable[Any], key: Callable[[Any], str] | None) -> Items:
        """Names the items by their index, or by their key, which must be unique."""
        if isinstance(items, set | frozenset):
            raise TypeError(
                f'map "{name}" runs over a {type(items).__name__}, whose order is another one in every process: '
                "sort it first, as in sorted(items)"
            )
        values = list(items)
        if key is None:
            return cls(values, [str(index) for index in range(len(values))], f"{len(values)} items")
        names = _unique(name, [key(value) for value in values])
        return cls(values, names, ",".join(names))


def map_items(
    host: Host,
    name: str,
    items: Iterable[Any],
    fn: Callable[[Any], Awaitable[Any]],
    *,
    concurrency: int = 10,
    key: Callable[[Any], str] | None = None,
) -> Block:
    """Awaited, gives `fn`'s values in the order of the items; the first failure is raised."""
    if concurrency < 1:
        raise ValueError(f"ctx.map(concurrency=...) must be 1 or more, not {concurrency}")
    known = Items.of(name, items, key)
    return Block(
        host,
        "map",
        name,
        lambda journal, scope, location: _Map(journal, scope, location, known, fn).run(concurrency),
    )


class _Map:
    def __init__(
        self,
        journal: Journal,
        scope: Scope,
        location: str,
        items: Items,
        fn: Callable[[Any], Awaitable[Any]],
    ) -> None:
        self._branches = Branches(journal, scope, location, items.keys, self._settled)
        self._names = items.names
        self._items = items.values
        self._fn = fn
        self._journal = journal
        self._values: list[Any] = [_MISSING] * len(items.values)
        self._waiting: Iterator[int] = iter(range(len(items.values)))
        self._running = 0
        self._failure: BaseException | None = None
        self._idle: asyncio.Future[None] = journal.loop.create_future()

    async def run(self, concurrency: int) -> list[Any]:
        for _ in range(min(concurrency, len(self._items))):
            self._start_next()
        try:
            if self._running:
                await self._idle
        except asyncio.CancelledError as cancelled:
            self._stop(cancelled)
            if self._running:
                self._idle = self._journal.loop.create_future()
                await self._idle
            raise
        if self._failure is not None:
            raise self._failure
        return self._values

    def _start_next(self) -> None:
        index = next(self._waiting, None)
        if index is None or self._failure is not None:
            return
        self._running += 1
        item = self._items[index]
        self._branches.start(str(index), self._names[index], lambda: self._fn(item))

    def _settled(self, key: str, value: Any, failure: Exception | None) -> None:
        self._running -= 1
        if failure is None:
            self._values[int(key)] = value
            self._start_next()
        elif self._failure is None:
            self._stop(failure)
        if not self._running and not self._idle.done():
            self._idle.set_result(None)

    def _stop(self, reason: BaseException) -> None:
        self._failure = reason
        self._branches.cancel()


def _unique(name: str, keys: list[str]) -> list[str]:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise DuplicateName(key, name)
        seen.add(key)
    return [escape(key) for key in keys]
