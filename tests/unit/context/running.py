"""Runs workflow code against a history without an engine."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from durable.context import Context
from durable.execution import Execution, Raised, Returned, RunInfo
from durable.model.entry import Entry

STARTED = datetime(2026, 1, 2, 23, 59, 30, tzinfo=UTC)


def execution_of(
    body: Callable[[Context], Awaitable[Any]], history: Sequence[Entry] = (), *, run_id: str = "r"
) -> Execution:
    """The execution after it has gone as far as the history takes it."""

    async def program(ctx: Context) -> Any:
        return await body(ctx)

    info = RunInfo(id=run_id, workflow="w", version="1", started_at=STARTED)
    execution = Execution(
        lambda execution: program(Context(execution)), info, history=history, started_at=STARTED.timestamp()
    )
    execution.advance()
    return execution


def outcome_of(body: Callable[[Context], Awaitable[Any]], *, run_id: str = "r") -> Any:
    """What code that waits for nothing returns; raises what it raises."""
    execution = execution_of(body, run_id=run_id)
    match execution.outcome:
        case Returned(value):
            return value
        case Raised(error):
            raise error


def operation_of(body: Callable[[Context], Awaitable[Any]]) -> Any:
    """The one operation that the code waits for."""
    execution = execution_of(body)
    if execution.finished:
        match execution.outcome:
            case Raised(error):
                raise error
            case Returned(value):
                raise AssertionError(f"it waits for nothing and returned {value!r}")
    (operation,) = execution.take()
    return operation
