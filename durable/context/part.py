"""What the parts of the context have in common: the execution that they call operations of."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from durable.execution import Execution

T = TypeVar("T")

Op: TypeAlias = Coroutine[Any, Any, T]
"""What every operation that can wait or fail returns.

Coroutine, not Awaitable: only then do both pyright (reportUnusedCoroutine) and mypy (unused-coroutine) report a
forgotten `await`, and `asyncio.create_task` accepts it.
"""


def close_coroutine(value: object) -> None:
    """Spares the reader of a TypeError the warning about a coroutine that was never awaited."""
    if inspect.iscoroutine(value):
        value.close()


class Part:
    """A part of the context."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
