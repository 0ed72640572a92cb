"""A map that keeps every item's outcome, and may end before all have one.

| state       | what happens                                                                                 |
|-------------|----------------------------------------------------------------------------------------------|
| called      | claims its name                                                                              |
| running     | at most `concurrency` items are tasks; the next starts when one ends                         |
| enough      | so many items have succeeded: the rest is cancelled, not waited for, and `Skipped`           |
| intolerable | one failure too many, or one that asks for a rollback: the rest is cancelled and waited for  |
| cancelled   | cancels every item, waits for their clean-up, then raises the cancellation                   |
| over        | MapResult, or MapError with the outcomes so far                                              |

It has no entry of its own: the order of record decides again which items came first, so every replay has the same
outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from durable import failures
from durable.errors import MapError
from durable.journal import Journal, Scope
from durable.ops.blocks import failure_of, wants_rollback
from durable.ops.branches import Branches
from durable.ops.map import Items
from durable.ops.operation import Block, Host
from durable.values import Failed, MapResult, Ok, Skipped

SKIPPED = Skipped()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many items run at a time, and what ends the map before all have ended."""

    concurrency: int
    tolerate: int | None
    enough: int | None


def try_map(host: Host, name: str, items: Items, fn: Callable[[Any], Awaitable[Any]], bounds: Bounds) -> Block:
    """Awaited, gives a MapResult; raises MapError where more items fail than are tolerated."""
    return Block(
        host,
        "try_map",
        name,
        lambda journal, scope, location: _TryMap(journal, scope, location, name, items, fn, bounds).run(),
    )


class _TryMap:
    def __init__(
        self,
        journal: Journal,
        scope: Scope,
        location: str,
        name: str,
        items: Items,
        fn: Callable[[Any], Awaitable[Any]],
        bounds: Bounds,
    ) -> None:
        self._journal = journal
        self._branches = Branches(journal, scope, location, items.keys, self._settled)
        self._name = name
        self._items = items
        self._fn = fn
        self._bounds = bounds
        self._outcomes: list[Ok[Any] | Failed | Skipped] = [SKIPPED] * len(items.values)
        self._waiting: Iterator[int] = iter(range(len(items.values)))
        self._running = self._succeeded = self._failed = 0
        self._rollback: Exception | None = None
        self._over = False
        self._done: asyncio.Future[None] = journal.loop.create_future()

    async def run(self) -> MapResult[Any]:
        for _ in range(min(self._bounds.concurrency, len(self._items.values))):
            self._start_next()
        try:
            if self._running:
                await self._done
        except asyncio.CancelledError:
            self._stop()
            if self._running:
                self._done = self._journal.loop.create_future()
                await self._done
            raise
        if self._rollback is not None:
            raise self._rollback
        result = MapResult(self._outcomes)
        if self._intolerable:
            raise MapError(self._name, result, failed=self._failed, tolerated=self._bounds.tolerate or 0)
        return result

    @property
    def _intolerable(self) -> bool:
        return self._bounds.tolerate is not None and self._failed > self._bounds.tolerate

    def _start_next(self) -> None:
        index = None if self._over else next(self._waiting, None)
        if index is None:
            return
        self._running += 1
        item = self._items.values[index]
        self._branches.start(str(index), self._items.names[index], lambda: self._fn(item))

    def _settled(self, key: str, value: Any, failure: Exception | None) -> None:
        self._running -= 1
        if not self._over:
            self._note(int(key), value, failure)
        self._start_next()
        if not self._running and not self._done.done():
            self._done.set_result(None)

    def _note(self, index: int, value: Any, failure: Exception | None) -> None:
        if failure is None:
            self._outcomes[index] = Ok(value)
            self._succeeded += 1
            if self._succeeded == self._bounds.enough:
                self._stop()
                if not self._done.done():
                    self._done.set_result(None)
            return
        if wants_rollback(failure):
            self._rollback = failure
            self._stop()
            return
        name = self._items.names[index]
        self._outcomes[index] = failure_of(failure) or Failed("exhausted", name, 1, failures.record(failure), "block")
        self._failed += 1
        if self._intolerable:
            self._stop()

    def _stop(self) -> None:
        self._over = True
        self._branches.cancel()
