import dataclasses

import pytest

from durable.options import CATCHABLE, MISSING, Backoff, Batch, Call, Rate, Step
from durable.values import NotDone, Ok


def test_delays_double_from_a_tenth_of_a_second_to_half_a_minute() -> None:
    backoff = Backoff()
    assert [backoff.delay_after(attempt) for attempt in (1, 2, 3)] == [0.1, 0.2, 0.4]
    assert backoff.delay_after(20) == 30
    assert backoff.delay_after(10_000) == 30


def test_jitter_keeps_between_half_and_all_of_the_delay_and_repeats_for_the_same_step() -> None:
    backoff = Backoff("10s", jitter=True)
    delays = [backoff.delay_after(1, f"run:step{n}") for n in range(200)]
    assert all(5 <= delay <= 10 for delay in delays)
    assert len(set(delays)) > 190
    assert delays[7] == backoff.delay_after(1, "run:step7")


@pytest.mark.parametrize("factor", [0.5, float("nan"), float("inf")])
def test_a_backoff_does_not_shrink(factor) -> None:
    with pytest.raises(ValueError, match="factor"):
        Backoff(factor=factor)


def test_a_step_has_three_retries_and_half_a_minute_for_each_attempt() -> None:
    step = Step()
    assert (step.name, step.retries, step.timeout, step.result) == (None, 3, 30, MISSING)
    assert set(CATCHABLE) - set(step.catch) == {"rollback"}


def test_an_at_most_once_step_has_no_retries() -> None:
    assert Step(at_most_once=True).retries == 0
    assert Step(at_most_once=True, retries=0).retries == 0
    with pytest.raises(ValueError, match=r"at_most_once=True, retries=3\) contradicts itself"):
        Step(at_most_once=True, retries=3)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retries": -1}, "0 or more"),
        ({"timeout": 0}, "at least"),
        ({"timeout": "30"}, "no unit"),
        ({"catch": ["late"]}, "critical, timeout, exhausted, rollback"),
        ({"catch": "timeout"}, "must be a list"),
        ({"at_most_once": True, "retry_on_timeout": True}, "contradicts"),
        ({"at_most_once": True, "ephemeral": True}, "contradicts"),
    ],
)
def test_options_that_make_no_sense_are_refused_where_they_are_written(options, problem) -> None:
    with pytest.raises(ValueError, match=problem):
        Step("s", **options)


@pytest.mark.parametrize("options", [{"retries": 1.5}, {"retries": True}, {"no_retry": ValueError}, {"no_retry": (3,)}])
def test_options_of_another_type_are_refused(options) -> None:
    with pytest.raises(TypeError, match="Step"):
        Step("s", **options)


def test_a_policy_is_frozen_and_reused_under_other_names() -> None:
    flaky = Step(retries=8, timeout="1m")
    named = flaky.named("fetch")
    assert (named.name, named.retries, named.timeout) == ("fetch", 8, 60)
    assert flaky.name is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        flaky.retries = 3  # type: ignore[misc]


def test_undo_and_verify_travel_with_the_policy() -> None:
    def undo(result: str, order: str) -> None: ...
    def verify(order: str) -> Ok[str] | NotDone:
        return NotDone()

    policy = Step("book", at_most_once=True).verify(verify).undo(undo).step
    assert (policy.name, policy.verify_fn, policy.undo_fn) == ("book", verify, undo)


def test_verify_is_for_at_most_once_steps() -> None:
    with pytest.raises(ValueError, match="at_most_once=True"):
        Step("book").verify(NotDone)


def test_undo_takes_a_function() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        Step("book").undo("cancel")  # type: ignore[arg-type]


def test_a_call_says_only_what_it_changes() -> None:
    call = Call("print", priority=2, timeout="5m")
    assert (call.name, call.queue, call.priority, call.retries, call.timeout) == ("print", None, 2, None, 300)


def test_rates_and_batches_check_their_numbers() -> None:
    assert Rate(100, per="1s").per == 1
    assert Batch(10, window="1m").window == 60
    with pytest.raises(ValueError, match="1 or more"):
        Rate(0, per="1s")
    with pytest.raises(ValueError, match="1 or more"):
        Batch(0, window="1s")


def test_a_first_delay_beyond_the_longest_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Backoff\(3600 s\) is longer than its max \(30 s\)"):
        Backoff("1h")
    assert Backoff("1h", max="1h").delay_after(5) == 3600
