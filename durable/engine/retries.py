"""What follows a failed attempt: another one after a delay, or the step's failure."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from durable.errors import AttemptInterrupted, NonRetryableError, NotStorable, RetryAfter, RollbackError, StepTimeout
from durable.model.duration import seconds

if TYPE_CHECKING:
    from durable.model.entry import FailureKind
    from durable.options import Step


log = logging.getLogger("durable")


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
    if isinstance(error, RetryAfter) and (delay := asked_delay(error)) is not None:
        return Retry(delay)
    return Retry(policy.backoff.delay_after(attempt, key))


def _final(policy: Step, error: BaseException) -> FailureKind | None:
    match error:
        case RollbackError():
            return "rollback"
        case NonRetryableError() | NotStorable():
            return "critical"
        case StepTimeout():
            return None if policy.retry_on_timeout else "timeout"
        case AttemptInterrupted():
            return None
        case Exception():
            return "critical" if isinstance(error, policy.no_retry) or not _wants_retry(policy, error) else None
        case BaseException():
            return None
        case _:
            assert_never(error)


def _wants_retry(policy: Step, error: Exception) -> bool:
    """What the author's `retry_if` says; a `retry_if` that fails itself does not ask for another attempt."""
    if policy.retry_if is None:
        return True
    try:
        return bool(policy.retry_if(error))
    except Exception:
        log.exception("retry_if of step %s raised; the step is not tried again", policy.name or "(unnamed)")
        return False


def asked_delay(error: RetryAfter) -> float | None:
    """The delay that the step asked for, or None where what it asked for is no duration: the policy's applies then."""
    try:
        return max(0.0, seconds(error.delay))
    except (ValueError, TypeError):
        log.warning("RetryAfter(%r) is no duration; the step's own backoff applies", error.delay)
        return None
