"""Tasks that run side by side, each in a scope of its own: what join, race and map are made of."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any, Final

from durable.errors import DurableError, RunSuspended
from durable.journal import Journal, Scope, current_scope, unawaited

Body = Callable[[], Awaitable[Any]]
"""A branch with the context and its arguments bound."""

Settled = Callable[[str, Any, Exception | None], None]
"""Told once for every branch that ends: its key, its value, its error."""

INTERRUPTS: Final = (RunSuspended, GeneratorExit, KeyboardInterrupt)
"""These end a task from outside; they are nobody's outcome."""


class Branches:
    """The branches of one join, race or map."""

    def __init__(self, journal: Journal, scope: Scope, location: str, keys: str, settled: Settled) -> None:
        self._journal = journal
        self._scope = scope
        self._location = location
        self._keys = keys
        """All keys in one text: every entry in a branch is checked for it."""
        self._settled = settled
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._begun: set[str] = set()

    def start(self, key: str, name: str, body: Body) -> None:
        """Starts a branch in the scope `location/name/`."""
        scope = self._scope.within(f"{self._location}/{name}/", self._keys)
        context = contextvars.copy_context()
        context.run(current_scope.set, scope)
        self._tasks[key] = self._journal.loop.create_task(self._run(key, scope, body), context=context)

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """Those that have not ended."""
        return list(self._tasks.values())

    def cancel(self) -> None:
        """Cancels the branches that have not ended; one that has not begun ends here, because its task never runs."""
        for key, task in list(self._tasks.items()):
            task.cancel()
            if key not in self._begun and key in self._tasks:
                self._end(key, None, _as_failure(key, asyncio.CancelledError()))

    async def _run(self, key: str, scope: Scope, body: Body) -> None:
        self._begun.add(key)
        try:
            value = await body()
        except INTERRUPTS:
            raise
        except BaseException as error:
            self._end(key, None, _as_failure(key, error))
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            if scope.unawaited:
                self._journal.loop.fail(unawaited(scope))
            self._end(key, value, None)

    def _end(self, key: str, value: Any, failure: Exception | None) -> None:
        del self._tasks[key]
        self._begun.discard(key)
        self._settled(key, value, failure)


def _as_failure(key: str, error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    failure = DurableError(
        f'branch "{key}" was cancelled' if isinstance(error, asyncio.CancelledError) else repr(error)
    )
    failure.__cause__ = error
    return failure
