"""What `ctx.step` makes of its arguments, and what it says about wrong ones."""

import functools

import pytest

from durable.app import App
from durable.context import Context
from durable.errors import InvalidName
from durable.ops.step import TryStepOperation
from durable.options import Step
from tests.unit.context.running import operation_of, outcome_of

app = App("shop")


@app.remote_step(queue="labels")
def print_label(order: str) -> str: ...


@app.workflow
async def fulfil(ctx: Context, order: str) -> str: ...


def charge(order: str, amount: int = 1) -> str:
    return order * amount


async def charge_later(order: str) -> str:
    return order


def undo(result: str, order: str, amount: int = 1) -> None: ...


def unfit(order: str) -> None: ...


def with_a_desk(fn):
    @functools.wraps(fn)
    def at_the_desk(*args, **kwargs):
        return fn("desk", *args, **kwargs)

    return at_the_desk


@with_a_desk
def serve(desk: str, order: str) -> str:
    return f"{order} at the {desk}"


class Desk:
    def serve(self, order: str) -> str:
        return order

    def __call__(self, order: str) -> str:
        return order


def test_a_step_takes_its_functions_name_and_the_plain_policy() -> None:
    operation = operation_of(lambda ctx: ctx.step(charge, "o", amount=2))
    assert (operation.location, operation.policy.retries) == ("charge", 3)
    assert operation.call() == "oo"


def test_a_step_may_be_named() -> None:
    operation = operation_of(lambda ctx: ctx.step("pay", charge, "o"))
    assert operation.location == "pay"


def test_a_policy_may_carry_the_name_or_leave_it_to_the_function() -> None:
    assert operation_of(lambda ctx: ctx.step(Step("pay", retries=8), charge, "o")).location == "pay"
    operation = operation_of(lambda ctx: ctx.step(Step(retries=8), charge, "o"))
    assert (operation.location, operation.policy.retries) == ("charge", 8)


def test_a_step_that_may_fail_as_a_value() -> None:
    operation = operation_of(lambda ctx: ctx.try_step("pay", charge, "o"))
    assert isinstance(operation, TryStepOperation)


def test_keywords_of_the_users_function_may_have_any_name() -> None:
    def step(fn: str, name: str) -> str:
        return fn + name

    assert operation_of(lambda ctx: ctx.step("s", step, fn="a", name="b")).call() == "ab"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda ctx: ctx.step(charge("o")),
            r"ctx.step\(\) got the result of a call \(str\)|got a name or a policy and no function",
        ),
        (lambda ctx: ctx.step("pay", charge("o")), r"got the result of a call \(str\), not a function"),
        (
            lambda ctx: ctx.step(charge_later("o")),
            r"got the result of a call \(coroutine\).*ctx.step\(charge_later, ...\), not ctx.step\(charge_later\(...\)\)",
        ),
        (lambda ctx: ctx.step(3), r"got the result of a call \(int\)"),
        (lambda ctx: ctx.step(Step("pay")), "got a name or a policy and no function"),
        (
            lambda ctx: ctx.step(print_label, "o"),
            r'remote step \(queue "labels"\). Use await ctx.call\(print_label, ...\)',
        ),
        (
            lambda ctx: ctx.step("n", fulfil, "o"),
            r"fulfil is a workflow, not a step: use await ctx.child\(fulfil, ...\), or await fulfil.fn",
        ),
        (
            lambda ctx: ctx.step(charge, "o", retries=3),
            r"go to charge\(\): got .* 'retries'\. A policy comes first: ctx.step\(Step\(retries=3\), charge, ...\)",
        ),
        (lambda ctx: ctx.step(charge), r"go to charge\(\): missing a required argument: 'order'\.$"),
        (
            lambda ctx: ctx.try_step("pay", charge_later, "o", 2),
            r"ctx.try_step\(charge_later, ...\).* too many positional",
        ),
        (lambda ctx: ctx.step(Desk().serve, "o", 2), r"go to serve\(\): too many positional"),
        (
            lambda ctx: ctx.step(Step(retries=0), "pay", charge, "o"),
            r'not both.*: ctx.step\(Step\("pay", ...\), charge, ...\)',
        ),
        (
            lambda ctx: ctx.step("pay", Step(retries=0), charge, "o"),
            r'not both.*: ctx.step\(Step\("pay", ...\), charge, ...\)',
        ),
        (lambda ctx: ctx.call(charge, "o"), "takes a function that @app.remote_step has registered, not charge"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_write(wrong, says) -> None:
    with pytest.raises(TypeError, match=says):
        outcome_of(wrong)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InvalidName, match="step name"):
        outcome_of(lambda ctx: ctx.step("", charge, "o"))


def test_an_undo_must_take_the_result_and_the_arguments() -> None:
    with pytest.raises(TypeError, match="must take the step's result and then the step's arguments"):
        operation_of(lambda ctx: ctx.step(Step("pay").undo(unfit), charge, "o", 1))  # pyright: ignore[reportCallIssue, reportArgumentType] - it is wrong on purpose


@pytest.mark.parametrize(
    "fitting",
    [
        lambda ctx: ctx.step(charge, order="o"),
        lambda ctx: ctx.step(serve, "o"),
        lambda ctx: ctx.step(Desk().serve, order="o"),
        lambda ctx: ctx.step(Desk(), "o"),
        lambda ctx: ctx.step(functools.partial(charge, amount=2), "o"),
        lambda ctx: ctx.step(functools.partial(charge, "o")),
        lambda ctx: ctx.step(max, 1, 2),
        lambda ctx: ctx.step(dict, a=1),
    ],
)
def test_what_fits_or_cannot_be_known_is_let_through(fitting) -> None:
    operation_of(fitting).call()
