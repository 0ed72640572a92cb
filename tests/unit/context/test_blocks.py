"""What loops, joins, races, maps and versions make of their arguments."""

import asyncio
from functools import partial
from typing import Any, cast

import pytest

from durable.context import Branch, Context
from durable.errors import DuplicateName, InvalidName, UnawaitedOperation
from durable.options import Backoff, Step
from durable.values import Break, Continue, Winner
from tests.unit.context.running import outcome_of


async def double(ctx: Context, number: int, plus: int = 0) -> int:
    return 2 * number + plus


async def name_of(ctx: Context, name: str) -> str:
    return name


async def no_input(ctx: Context) -> int:
    return 1


async def counting(ctx: Context, state: int) -> Continue[int] | Break[str]:
    return Break(f"at {state}") if state == 3 else Continue(state + 1)


def with_results(body):
    """Without an engine nothing is recorded, so blocks are looked at before they wait."""

    async def look(ctx: Context) -> None:
        operation = body(ctx)
        operation.close()

    return look


@pytest.mark.parametrize(
    "block",
    [
        lambda ctx: ctx.join("j", Branch("a", double, 1, plus=2), Branch("b", name_of, "n")),
        lambda ctx: ctx.join("j", {"a": partial(double, number=1), "b": partial(double, number=2)}),
        lambda ctx: ctx.race("r", Branch("a", double, 1), Branch("b", double, 2), settle="first"),
        lambda ctx: ctx.map("m", [1, 2], double, concurrency=1, key=str),
        lambda ctx: ctx.loop("l", counting, state=0, history=1),
        lambda ctx: ctx.try_block("b", no_input, catch=("join",)),
        lambda ctx: ctx.retrying("b", no_input, retries=2),
        lambda ctx: ctx.wait_until("w", lambda: 1, every="1m", timeout="1h", attempts=3),
        lambda ctx: ctx.wait_until(Step(retries=1), lambda: 1, every=Backoff(1)),
        lambda ctx: ctx.try_map("m", [1], double, tolerate=0, enough=1),
    ],
)
def test_a_block_is_claimed_when_it_is_called(block) -> None:
    outcome_of(with_results(block))


def test_a_join_that_is_cancelled_before_it_begins_is_no_forgotten_one() -> None:
    async def body(ctx: Context) -> str:
        task = asyncio.create_task(ctx.join("j", Branch("a", double, 1), Branch("b", double, 2)))
        task.cancel()
        await asyncio.wait([task])
        return "went on"

    assert outcome_of(body) == "went on"


def test_a_join_that_is_never_awaited_is_named() -> None:
    async def body(ctx: Context) -> None:
        ctx.join("both", Branch("a", double, 1), Branch("b", double, 2))  # pyright: ignore[reportUnusedCoroutine]

    with pytest.raises(UnawaitedOperation, match='join "both" was called and never awaited'):
        outcome_of(body)


def test_the_values_of_a_join_come_in_the_order_of_its_branches() -> None:
    async def body(ctx: Context) -> tuple[int, str]:
        number, name = await ctx.join("j", Branch("b", double, 1, plus=2), Branch("a", name_of, "n"))
        return number, name

    assert outcome_of(body) == (4, "n")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("block", "error", "says"),
    [
        (lambda ctx: ctx.join("j", name_of(ctx, "x"), name_of(ctx, "y")), TypeError, r'takes Branch\("key", fn, ...\)'),
        (
            lambda ctx: ctx.join("j", {"a": name_of(ctx, "x")}),
            TypeError,
            'got coroutine for branch "a", not a function',
        ),
        (lambda ctx: ctx.join("", Branch("a", double, 1)), InvalidName, "name of a join"),
        (lambda ctx: ctx.join("j", Branch("a", double, 1), Branch("a", double, 2)), DuplicateName, '"a" is used twice'),
        (lambda ctx: ctx.join("j", Branch("", double, 1)), InvalidName, "branch key"),
        (lambda ctx: ctx.join("j", Branch("a", cast("Any", 3))), TypeError, r"Branch\(\) takes a function"),
        (lambda ctx: ctx.race("r", Branch("a", double, 1), settle="last"), ValueError, '"success" or "first"'),
        (lambda ctx: ctx.race("r"), ValueError, "no branches"),
        (lambda ctx: ctx.map("m", [1], double, concurrency=0), ValueError, "1 or more, not 0"),
        (lambda ctx: ctx.map("m", [1], 3), TypeError, "takes a function"),
        (lambda ctx: ctx.map("m", [1, 1], double, key=str), DuplicateName, '"1" is used twice'),
        (lambda ctx: ctx.loop("l", counting(ctx, 0), state=0), TypeError, r"ctx.loop\(\) takes a function"),
        (lambda ctx: ctx.loop("l", counting, state=0, history=0), ValueError, "1 or more, not 0"),
        (lambda ctx: ctx.try_block("b", name_of(ctx, "x")), TypeError, r"ctx.try_block\(\) takes a function"),
        (lambda ctx: ctx.try_block("b", no_input, catch=("sleep",)), ValueError, "must be a list of step, join"),
        (lambda ctx: ctx.try_block("b", no_input, catch="step"), ValueError, "must be a list of step, join"),
        (lambda ctx: ctx.retrying("b", name_of(ctx, "x")), TypeError, r"ctx.retrying\(\) takes a function"),
        (lambda ctx: ctx.retrying("b", no_input, retries=-1), ValueError, "0 or more, not -1"),
        (lambda ctx: ctx.wait_until("w", 3, every=1), TypeError, r"ctx.wait_until\(\) takes a function"),
        (lambda ctx: ctx.wait_until("w", list, every=0), ValueError, "every=...* must be at least"),
        (lambda ctx: ctx.wait_until("w", list, every="10"), ValueError, "every"),
        (lambda ctx: ctx.wait_until("w", list, every=1, timeout=-1), ValueError, "timeout"),
        (lambda ctx: ctx.wait_until("w", list, every=1, attempts=0), ValueError, "1 or more, not 0"),
        (lambda ctx: ctx.try_map("m", [1], 3), TypeError, r"ctx.try_map\(\) takes a function"),
        (lambda ctx: ctx.try_map("m", [1], double, tolerate=-1), ValueError, "0 or more, not -1"),
        (lambda ctx: ctx.try_map("m", [1], double, enough=0), ValueError, "1 or more, not 0"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_written(block, error, says) -> None:
    async def body(ctx: Context) -> None:
        await block(ctx)

    with pytest.raises(error, match=says):
        outcome_of(body)


def test_a_branch_knows_whether_it_has_won() -> None:
    branch = Branch("a", double, 1)
    assert branch.won(Winner("a", 2))
    assert not branch.won(Winner("b", 2))


def test_a_version_is_a_number_from_one_on() -> None:
    async def body(ctx: Context) -> tuple[int, bool]:
        return ctx.get_version("price", 3), ctx.patched("tax")

    assert outcome_of(body) == (3, True)
    for wrong, error in ((0, ValueError), ("2", TypeError)):
        with pytest.raises(error, match="get_version"):
            outcome_of(with_version(wrong))


def with_version(latest):
    async def body(ctx: Context) -> int:
        return ctx.get_version("price", latest)

    return body


@pytest.mark.parametrize("items", [{3, 1, 2}, frozenset({"b", "a"})])
def test_a_map_over_a_set_is_refused(items) -> None:
    for block in (lambda ctx: ctx.map("m", items, double), lambda ctx: ctx.try_map("m", items, double)):
        with pytest.raises(TypeError, match=r'map "m" runs over a (frozen)?set.* sort it first, as in sorted\(items\)'):
            outcome_of(with_results(block))


def not_async(ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda ctx: ctx.loop("l", counting), r'the body of loop "l" takes a state and there is none: add state=...'),
        (lambda ctx: ctx.loop("l", no_input, state=0), 'the body of loop "l" takes no state'),
        (lambda ctx: ctx.loop("l", not_async), 'the body of loop "l" must be async def: it gave None'),
    ],
)
def test_a_loop_whose_body_does_not_fit_says_what_to_write(wrong, says) -> None:
    with pytest.raises(TypeError, match=says):
        outcome_of(wrong)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda ctx: ctx.step(len, "x").upper(),
            r'step "len" was not awaited, .*: write \(await ctx.step\(...\)\).upper',
        ),
        (lambda ctx: ctx.try_block("b", no_input).value, r'"b" was not awaited.* \(await ...\).value'),
        (lambda ctx: ctx.join("j", Branch("a", no_input), Branch("b", no_input)).index(1), r'"j" was not awaited'),
    ],
)
def test_an_operation_that_is_taken_for_its_value_stops_the_run_and_says_what_to_write(call, says) -> None:
    async def body(ctx: Context) -> str:
        try:
            return call(ctx)
        except Exception:  # noqa: BLE001 - that is what workflows do
            return "hidden"

    with pytest.raises(UnawaitedOperation, match=says):
        outcome_of(body)


def test_what_is_asked_for_by_trial_is_just_not_there() -> None:
    async def body(ctx: Context) -> tuple[bool, ...]:
        operation = ctx.join("j", Branch("a", double, 1), Branch("b", double, 2))
        found = tuple(hasattr(operation, name) for name in ("__len__", "_repr_html_", "gi_frame"))
        operation.close()
        return found

    assert outcome_of(body) == (False, False, False)
