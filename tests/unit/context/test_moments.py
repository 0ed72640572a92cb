"""Time, chance and the log are the same on every replay, and unrelated code does not shift them."""

import asyncio
import contextvars
import logging
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from durable.context import Context
from durable.errors import OperationInsideStep
from durable.execution import Returned
from durable.journal import Scope, current_scope
from durable.model.entry import Entry
from tests.unit.context.running import STARTED, execution_of, operation_of, outcome_of


def nothing() -> None: ...


async def numbers(ctx: Context) -> list[float]:
    return [ctx.random.random() for _ in range(3)]


def test_random_numbers_repeat_for_a_run_and_differ_between_runs() -> None:
    assert outcome_of(numbers) == outcome_of(numbers)
    assert outcome_of(numbers) != outcome_of(numbers, run_id="other")
    assert len(set(outcome_of(numbers))) == 3


def test_uuids_do_not_shift_random_numbers() -> None:
    async def body(ctx: Context) -> list[float]:
        assert ctx.uuid() != ctx.uuid()
        assert ctx.uuid().version == 4
        return await numbers(ctx)

    assert outcome_of(body) == outcome_of(numbers)


def in_scope(prefix: str, fn, *args):
    context = contextvars.copy_context()
    context.run(current_scope.set, Scope(prefix))
    return context.run(fn, *args)


def test_every_scope_has_a_stream_of_its_own() -> None:
    async def alone(ctx: Context) -> list[float]:
        return [in_scope("a/", ctx.random.random) for _ in range(2)]

    async def with_neighbours(ctx: Context) -> list[float]:
        random = ctx.random
        drawn: list[float] = []
        for _ in range(2):
            random.random()
            in_scope("b/", random.gauss)
            drawn.append(in_scope("a/", random.random))
        return drawn

    assert outcome_of(alone) == outcome_of(with_neighbours)
    assert outcome_of(alone) != outcome_of(numbers)[:2]


def test_everything_that_random_offers_works() -> None:
    async def body(ctx: Context):
        random = ctx.random
        deck = list(range(52))
        random.shuffle(deck)
        assert sorted(deck) == list(range(52))
        assert len(random.randbytes(100)) == 100
        assert 0 <= random.getrandbits(5) < 32
        assert random.getrandbits(0) == 0
        assert random.choice("abc") in "abc"
        assert len(random.sample(range(1000), 20)) == 20
        return deck, random.gauss(), random.expovariate(1.0), random.randint(1, 6), random.getrandbits(1000)

    assert outcome_of(body) == outcome_of(body)


def test_random_numbers_are_spread_evenly() -> None:
    async def body(ctx: Context) -> float:
        return sum(ctx.random.random() for _ in range(2000)) / 2000

    assert 0.45 < outcome_of(body) < 0.55


def test_random_has_no_state_to_set() -> None:
    async def body(ctx: Context) -> None:
        ctx.random.setstate(ctx.random.getstate())

    with pytest.raises(NotImplementedError, match="no state"):
        outcome_of(body)


def test_randomness_outside_workflow_code_is_refused() -> None:
    execution = execution_of(lambda ctx: asyncio.sleep(1))
    with pytest.raises(OperationInsideStep, match=r"ctx\.random"):
        Context(execution).random.random()
    with pytest.raises(OperationInsideStep, match=r"ctx\.uuid"):
        Context(execution).uuid()


def test_now_is_the_time_of_the_latest_result_in_utc() -> None:
    async def body(ctx: Context) -> tuple[datetime, date, datetime, date]:
        before = ctx.now(), ctx.today()
        await ctx.sleep("1m")
        return *before, ctx.now(), ctx.today()

    woke = STARTED + timedelta(seconds=61)
    history = [Entry(location="sleep", kind="sleep", epoch=1, n=1, at=woke.timestamp())]
    outcome = execution_of(body, history).outcome
    assert isinstance(outcome, Returned)
    assert outcome.value == (STARTED, date(2026, 1, 2), woke, date(2026, 1, 3))
    assert outcome.value[0].tzinfo is UTC


def test_a_sleep_knows_its_deadline() -> None:
    sleeping = operation_of(lambda ctx: ctx.sleep(timedelta(hours=1), name="nap"))
    assert (sleeping.location, sleeping.deadline) == ("nap", STARTED.timestamp() + 3600)
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    until = operation_of(lambda ctx: ctx.sleep_until(moment))
    assert (until.location, until.deadline) == ("sleep", moment.timestamp())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda ctx: ctx.sleep("10"), "no unit"),
        (lambda ctx: ctx.sleep("1M"), "minutes"),
        (lambda ctx: ctx.sleep("11 years"), "count days"),
        (lambda ctx: ctx.sleep("4000 days"), "ten years"),
        (lambda ctx: ctx.sleep_until(datetime(2026, 3, 1)), "has no time zone"),  # noqa: DTZ001 - that is the point
        (lambda ctx: ctx.sleep_until(datetime(2099, 3, 1, tzinfo=UTC)), "ten years"),
        (lambda ctx: ctx.sleep(1, name=""), "name of a sleep"),
    ],
)
def test_a_wrong_time_is_refused_where_it_is_written(wrong, says) -> None:
    with pytest.raises(ValueError, match=says):
        outcome_of(wrong)


def test_a_number_is_no_moment() -> None:
    with pytest.raises(TypeError, match="takes a datetime with a time zone, not int"):
        outcome_of(lambda ctx: ctx.sleep_until(3))  # type: ignore[arg-type]


def test_a_moment_is_no_duration() -> None:
    with pytest.raises(TypeError, match=r"not a datetime: for a moment use ctx.sleep_until"):
        outcome_of(lambda ctx: ctx.sleep(datetime(2026, 3, 1, tzinfo=UTC)))  # type: ignore[arg-type]


def test_the_run_is_known() -> None:
    async def body(ctx: Context) -> tuple[str, str, str]:
        return ctx.run_id, ctx.run.workflow, ctx.run.version

    assert outcome_of(body) == ("r", "w", "1")


async def logging_workflow(ctx: Context) -> None:
    ctx.log.info("before")
    await ctx.step(nothing)
    ctx.log.warning("after %s", "the step")
    await ctx.sleep("1h")


def test_the_log_names_the_run(caplog) -> None:
    with caplog.at_level(logging.INFO):
        execution_of(logging_workflow)
    (line,) = caplog.records
    assert (line.name, line.getMessage(), line.run_id, line.workflow) == ("durable.workflow.w", "before", "r", "w")
    assert line.funcName == "logging_workflow"


def test_the_log_is_silent_while_code_is_replayed(caplog) -> None:
    step = Entry(location="nothing", kind="step", epoch=1, n=1, at=STARTED.timestamp(), fn="nothing")
    with caplog.at_level(logging.INFO):
        execution = execution_of(logging_workflow, [step])
        assert not caplog.records
        (sleeping,) = execution.take()
        execution.deliver(Entry(location=sleeping.location, kind="sleep", epoch=1, n=2, at=STARTED.timestamp() + 3600))
    assert execution.finished
