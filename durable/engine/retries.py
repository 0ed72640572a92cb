"""What follows a failed attempt: another one after a delay, or the step's failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from durable.errors import NonRetryableError, NotStorable, RetryAfter, RollbackError
from durable.model.duration import seconds

if TYPE_CHECKING:
    from durable.model.entry import FailureKind
    from durable.options import Step


class StepTimeout(TimeoutError):
    """An attempt did not end within its timeout. Its body cannot be stopped; its late result is dropped."""


class Interrupted(Exception):
    """The invocation ended during an attempt, so nobody knows how the attempt ended."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt, not before `delay` seconds from now."""

    delay: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The step has failed."""

    kind: FailureKind


def after_failure(policy: Step, attempt: int, error: BaseException, key: str) -> Retry | GiveUp:
    """Decides on attempt number `attempt`, which ended with `error`; `key` seeds the jitter."""
    kind = _final(policy, error)
    if kind is not None:
        return GiveUp(kind)
    if attempt > policy.retries:
        return GiveUp("timeout" if isinstance(error, StepTimeout) else "exhausted")
    if isinstance(error, RetryAfter):
        return Retry(max(0.0, seconds(error.delay)))
    return Retry(policy.backoff.delay_after(attempt, key))


def _final(policy: Step, error: BaseException) -> FailureKind | None:
    match error:
        case RollbackError():
            return "rollback"
        case NonRetryableError() | NotStorable():
            return "critical"
        case StepTimeout():
            return None if policy.retry_on_timeout else "timeout"
        case Interrupted():
            return None
        case Exception():
            refused = isinstance(error, policy.no_retry) or (policy.retry_if is not None and not policy.retry_if(error))
            return "critical" if refused else None
        case BaseException():
            return None
        case _:
            assert_never(error)
