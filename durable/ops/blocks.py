"""What blocks have in common: a scope of their own in the task that runs them, and failures as values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from durable import failures
from durable.errors import (
    CallbackFailed,
    ChildFailed,
    EntityFailed,
    JoinError,
    MapError,
    RaceError,
    RollbackError,
    StepFailed,
)
from durable.journal import Entered, Journal, Scope, unawaited
from durable.model.entry import FailureKind
from durable.values import Failed, Source

ROLLBACK: Final[FailureKind] = "rollback"


async def run_within(journal: Journal, scope: Scope, body: Callable[[], Awaitable[Any]]) -> Any:
    """Runs a block's body in its scope; an operation that it called and did not await stops the run."""
    with Entered(scope):
        value = await body()
    if scope.unawaited:
        journal.loop.fail(unawaited(scope))
    return value


def failure_of(error: Exception) -> Failed | None:
    """The failure of an operation as a value; None for an exception of the code itself."""
    match error:
        case StepFailed():
            return Failed(_kind(error), error.name, error.attempts, error.error, "step")
        case ChildFailed():
            return Failed("exhausted", error.run_id, 1, failures.record(error), "child")
        case CallbackFailed():
            kind: FailureKind = "exhausted" if error.retryable else "critical"
            return Failed(kind, error.name, 1, failures.record(error), "callback")
        case EntityFailed():
            return Failed("exhausted", f"{error.entity}.{error.operation}", 1, failures.record(error), "entity")
        case JoinError() | RaceError() | MapError():
            source: Source = (
                "join" if isinstance(error, JoinError) else "race" if isinstance(error, RaceError) else "block"
            )
            return Failed(_kind(error), error.name, 1, failures.record(error), source)
        case _:
            return None


def wants_rollback(error: BaseException) -> bool:
    """Whether the failure, or one inside it, asks for the run to be rolled back: no block keeps that to itself."""
    match error:
        case StepFailed(kind=kind):
            return kind == ROLLBACK
        case JoinError() | RaceError():
            return any(wants_rollback(each) for each in error.failures.values())
        case RollbackError():
            return True
        case _:
            return False


def _kind(error: Exception) -> FailureKind:
    """That of a step; of several failures the one that all have, if they agree."""
    match error:
        case StepFailed():
            return cast("FailureKind", error.kind)
        case JoinError() | RaceError():
            kinds: set[FailureKind] = {_kind(each) for each in error.failures.values()}
            return kinds.pop() if len(kinds) == 1 else "exhausted"
        case _:
            return "exhausted"
