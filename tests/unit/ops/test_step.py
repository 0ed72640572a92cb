"""Steps as the replay core sees them."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from durable import failures
from durable.errors import NotStorable, StepFailed
from durable.model.entry import Entry
from durable.ops.step import StepOperation, TryStepOperation
from durable.options import Step
from tests.properties.virtual_engine import STARTED_AT, Ctx, Opened, open_run

POLICY = Step()


def charge(order: str, amount: int = 1) -> int:
    return len(order) * amount


class Charger:
    def __call__(self, order: str) -> int:
        return len(order)

    def charge(self, order: str) -> int:
        return len(order)


class CardDeclined(Exception):
    pass


def parked(
    *args: Any, kind: type[StepOperation] = StepOperation, policy: Step = POLICY
) -> tuple[Opened, StepOperation]:
    """A run that waits for one step, and the step."""
    name = args[0] if isinstance(args[0], str) else None
    fn, *rest = args[1:] if name else args

    async def workflow(ctx: Ctx) -> Any:
        return await kind(ctx.execution, name, policy, fn, tuple(rest))

    opened = open_run(workflow)
    opened.execution.advance()
    [step] = opened.execution.take()
    assert isinstance(step, StepOperation)
    return opened, step


def entry(step: StepOperation, **content: Any) -> Entry:
    return Entry(location=step.location, kind="step", epoch=1, n=1, at=STARTED_AT, fn=step.fn, attempts=4, **content)


@pytest.mark.parametrize(
    ("fn", "location", "qualified"),
    [
        (charge, "charge", "charge"),
        (functools.partial(charge, amount=2), "charge", "charge"),
        (Charger().charge, "charge", "Charger.charge"),
        (Charger(), "Charger", "Charger.__call__"),
    ],
)
def test_a_step_is_named_after_its_function(fn: Any, location: str, qualified: str) -> None:
    _, step = parked(fn, "abc")
    assert (step.location, step.fn, step.name) == (location, qualified, location)


def test_a_name_may_come_from_the_call_or_from_the_policy() -> None:
    assert parked("pay", charge, "abc")[1].location == "pay"
    assert parked(charge, "abc", policy=Step("flaky"))[1].location == "flaky"


def test_its_body_is_bound_to_its_arguments() -> None:
    _, step = parked(charge, "abc", 2)
    assert step.call() == 6
    assert step.arguments == (("abc", 2), {})


def test_its_value_passes_through_the_declared_type() -> None:
    opened, step = parked(charge, "abc")
    assert step.encode(3) == "3"
    with pytest.raises(NotStorable):
        step.encode("three")
    opened.execution.deliver(entry(step, value="3"))
    assert opened.result == "returned 3"


def test_its_idempotency_key_is_stable_and_its_own() -> None:
    keys = [parked(name, charge, "abc")[1].idempotency_key for name in ("a", "a", "b")]
    assert keys[0] == keys[1] != keys[2]
    assert all(key.isalnum() and len(key) == 32 for key in keys)


def test_a_failure_is_raised_as_step_failed_and_as_the_class_that_the_step_raised() -> None:
    opened, step = parked(charge, "abc")
    opened.execution.deliver(entry(step, error=failures.record(CardDeclined("51")), failure="exhausted"))
    error = opened.execution.outcome.exception  # type: ignore[union-attr]
    assert isinstance(error, StepFailed)
    assert isinstance(error, CardDeclined)
    assert (error.name, error.attempts, error.kind) == ("charge", 4, "exhausted")


@pytest.mark.parametrize(("failure", "returned"), [("timeout", True), ("exhausted", True), ("rollback", False)])
def test_try_step_returns_the_failures_that_it_catches(failure: str, returned: bool) -> None:
    opened, step = parked(charge, "abc", kind=TryStepOperation)
    opened.execution.deliver(entry(step, error=failures.record(CardDeclined("51")), failure=failure))
    assert opened.result.startswith(f"returned Failed(kind='{failure}'" if returned else "raised ")


def test_try_step_returns_ok_around_the_value() -> None:
    opened, step = parked(charge, "abc", kind=TryStepOperation)
    opened.execution.deliver(entry(step, value="3"))
    assert opened.result == "returned Ok(value=3)"


def test_a_result_instead_of_a_function_is_refused() -> None:
    async def workflow(ctx: Ctx) -> Any:
        return await ctx.step("pay", charge("abc"))

    opened = open_run(workflow)
    opened.execution.advance()
    assert "ctx.step() got int, not a function" in opened.result
