"""What follows a failed attempt depends on the policy and the error, and on nothing else."""

from __future__ import annotations

import pytest

from durable.engine.retries import GiveUp, Retry, after_failure
from durable.errors import AttemptInterrupted, NonRetryableError, NotStorable, RetryAfter, RollbackError, StepTimeout
from durable.options import Backoff, Step

POLICY = Step(retries=2, backoff=Backoff(1, factor=10, max=50))


@pytest.mark.parametrize(("attempt", "delay"), [(1, 1.0), (2, 10.0)])
def test_an_ordinary_error_is_tried_again_after_a_growing_delay(attempt: int, delay: float) -> None:
    assert after_failure(POLICY, attempt, ValueError(), "k") == Retry(delay)


def test_attempts_are_retries_plus_one() -> None:
    assert after_failure(POLICY, 3, ValueError(), "k") == GiveUp("exhausted")


def test_an_interrupted_attempt_counts_like_a_failed_one() -> None:
    assert after_failure(POLICY, 2, AttemptInterrupted(), "k") == Retry(10.0)
    assert after_failure(POLICY, 3, AttemptInterrupted(), "k") == GiveUp("exhausted")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NonRetryableError("no"), "critical"),
        (RollbackError("no"), "rollback"),
        (NotStorable("no"), "critical"),
        (StepTimeout(1), "timeout"),
    ],
)
def test_some_errors_are_final_at_once(error: Exception, kind: str) -> None:
    assert after_failure(POLICY, 1, error, "k") == GiveUp(kind)  # type: ignore[arg-type]


def test_a_timeout_is_tried_again_only_where_the_policy_says_so() -> None:
    policy = Step(retries=1, retry_on_timeout=True)
    assert isinstance(after_failure(policy, 1, StepTimeout(1), "k"), Retry)
    assert after_failure(policy, 2, StepTimeout(1), "k") == GiveUp("timeout")


def test_a_body_that_raises_timeout_error_itself_is_no_timeout_of_ours() -> None:
    assert isinstance(after_failure(POLICY, 1, TimeoutError(), "k"), Retry)


def test_no_retry_and_retry_if_make_an_error_final() -> None:
    assert after_failure(Step(no_retry=(KeyError,)), 1, KeyError(), "k") == GiveUp("critical")
    assert isinstance(after_failure(Step(no_retry=(KeyError,)), 1, ValueError(), "k"), Retry)
    assert after_failure(Step(retry_if=lambda e: "soon" in str(e)), 1, ValueError("never"), "k") == GiveUp("critical")
    assert isinstance(after_failure(Step(retry_if=lambda e: "soon" in str(e)), 1, ValueError("soon"), "k"), Retry)


def test_retry_after_sets_the_delay() -> None:
    assert after_failure(POLICY, 1, RetryAfter("30s"), "k") == Retry(30.0)
    assert after_failure(POLICY, 3, RetryAfter("30s"), "k") == GiveUp("exhausted")


def test_a_retry_if_that_raises_asks_for_no_further_attempt() -> None:
    def broken(_error: Exception) -> bool:
        raise KeyError("oops")

    assert after_failure(Step(retry_if=broken), 1, ValueError(), "k") == GiveUp("critical")


def test_a_delay_that_is_no_duration_leaves_the_policys_own() -> None:
    assert after_failure(POLICY, 1, RetryAfter("soon"), "k") == Retry(1.0)
