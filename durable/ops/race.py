"""A race: branches that run side by side until one of them decides it.

| state     | what happens                                                                         |
|-----------|--------------------------------------------------------------------------------------|
| called    | claims its name                                                                      |
| running   | every branch is a task; the branches' own operations are in the history              |
| decided   | the losers are cancelled and not waited for; what they had consumed stays consumed   |
| cancelled | cancels every branch, waits for their clean-up, then raises the cancellation         |
| over      | the winner, or RaceError when every branch has failed                                |

It has no entry of its own: the order of record decides again who wins, so every replay has the same winner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from durable.errors import RaceError
from durable.journal import Journal, Scope
from durable.model.location import escape
from durable.ops.branches import Body, Branches
from durable.ops.operation import Block, Host
from durable.values import Winner

Settle = Literal["success", "first"]


def race(host: Host, name: str, branches: Mapping[str, Body], settle: Settle = "success") -> Block:
    """Awaited, gives the first branch that succeeded; with `settle="first"` a branch that fails decides as well."""
    if not branches:
        raise ValueError(f'race "{name}" has no branches: nobody could win')
    return Block(
        host,
        "race",
        name,
        lambda journal, scope, location: _Race(journal, scope, location, name, branches, settle).run(),
    )


class _Race:
    def __init__(
        self, journal: Journal, scope: Scope, location: str, name: str, branches: Mapping[str, Body], settle: Settle
    ) -> None:
        self._name = name
        self._bodies = branches
        self._settle = settle
        self._branches = Branches(journal, scope, location, ",".join(branches), self._settled)
        self._failures: dict[str, Exception] = {}
        self._decided: asyncio.Future[Winner[Any] | None] = journal.loop.create_future()

    async def run(self) -> Winner[Any]:
        for key, body in self._bodies.items():
            self._branches.start(key, escape(key), body)
        try:
            winner = await self._decided
        except asyncio.CancelledError:
            self._branches.cancel()
            if left := self._branches.tasks:
                await asyncio.wait(left)
            raise
        finally:
            self._branches.cancel()
        if winner is None:
            raise RaceError(self._name, {key: self._failures[key] for key in self._bodies if key in self._failures})
        return winner

    def _settled(self, key: str, value: Any, failure: Exception | None) -> None:
        if self._decided.done():
            return
        if failure is None:
            self._decided.set_result(Winner(key, value))
            return
        self._failures[key] = failure
        if self._settle == "first":
            self._decided.set_exception(failure)
        elif len(self._failures) == len(self._bodies):
            self._decided.set_result(None)
