"""A join: branches that run side by side; it ends when all of them have.

| state     | what happens                                                                    |
|-----------|---------------------------------------------------------------------------------|
| called    | claims its name                                                                 |
| running   | every branch is a task; the branches' own operations are in the history         |
| cancelled | cancels every branch, waits for their clean-up, then raises the cancellation    |
| over      | the values by key, or JoinError with every failure                              |

It has no entry of its own: on replay its branches are executed again, because they may have changed what lies around
them (an event, a queue, a variable).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from durable.errors import JoinError
from durable.journal import Journal, Scope
from durable.model.location import escape
from durable.ops.branches import Body, Branches
from durable.ops.operation import Block, Host


def join(host: Host, name: str, branches: Mapping[str, Body]) -> Block:
    """Awaited, gives the branches' values by key, in the order of the branches."""
    return Block(
        host, "join", name, lambda journal, scope, location: _Join(journal, scope, location, name, branches).run()
    )


class _Join:
    def __init__(self, journal: Journal, scope: Scope, location: str, name: str, branches: Mapping[str, Body]) -> None:
        self._name = name
        self._bodies = branches
        self._branches = Branches(journal, scope, location, ",".join(branches), self._settled)
        self._journal = journal
        self._values: dict[str, Any] = {}
        self._failures: dict[str, Exception] = {}
        self._left = len(branches)
        self._all_settled: asyncio.Future[None] = journal.loop.create_future()

    async def run(self) -> dict[str, Any]:
        for key, body in self._bodies.items():
            self._branches.start(key, escape(key), body)
        try:
            if self._left:
                await self._all_settled
        except asyncio.CancelledError:
            self._branches.cancel()
            if self._left:
                self._all_settled = self._journal.loop.create_future()
                await self._all_settled
            raise
        if self._failures:
            raise JoinError(self._name, {key: self._failures[key] for key in self._bodies if key in self._failures})
        return {key: self._values[key] for key in self._bodies}

    def _settled(self, key: str, value: Any, failure: Exception | None) -> None:
        if failure is None:
            self._values[key] = value
        else:
            self._failures[key] = failure
        self._left -= 1
        if not self._left and not self._all_settled.done():
            self._all_settled.set_result(None)
