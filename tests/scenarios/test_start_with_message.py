"""A message starts its run if there is none: one intention, taken once, whatever dies on the way."""

from typing import Any

import pytest

from durable import App, Context, InvalidInput, LimitExceeded, RunAlreadyExists, RunEnded, Signal
from durable.model.envelope import Deliver, StartSpec
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

ADD = Signal("add", int)
app = App("start-with-message")


@app.workflow(tags=["sums"])
async def summing(ctx: Context, count: int) -> list[int]:
    return [await ctx.wait_for_signal(ADD) for _ in range(count)]


@app.workflow
async def other(ctx: Context) -> int:
    return await ctx.wait_for_signal(ADD)


def test_a_message_starts_its_run(world: World) -> None:
    with world(app) as env:
        handle = env.start_with_message(summing, 2, ADD, 5, id="s-1", message_id="m-1", tags=["vip"])
        env.run_until_idle()
        assert env.get("s-1").tags == ("sums", "vip")
        assert env.get("s-1").status == "suspended"
        handle.send(ADD, 6)
        assert handle.result() == [5, 6]


def test_a_run_that_exists_is_only_messaged(world: World) -> None:
    with world(app) as env:
        handle = env.start(summing, 2, id="s-1")
        env.run_until_idle()
        env.start_with_message(summing, 99, ADD, 1, id="s-1")
        env.start_with_message(summing, 99, ADD, 2, id="s-1")
        assert handle.result() == [1, 2]


def test_two_at_once_are_one_run_with_two_messages(world: World) -> None:
    with world(app) as env:
        first = env.start_with_message(summing, 2, ADD, 1, id="s-1")
        env.start_with_message(summing, 3, ADD, 2, id="s-1")
        assert first.result() == [1, 2]


def test_the_same_message_twice_is_one(world: World) -> None:
    with world(app) as env:
        for _ in range(3):
            env.start_with_message(summing, 2, ADD, 1, id="s-1", message_id="m-1")
            env.run_until_idle()
            env.advance("10m")
        assert env.get("s-1").status == "suspended"
        env.start_with_message(summing, 2, ADD, 2, id="s-1", message_id="m-2")
        assert env.result("s-1") == [1, 2]


def test_a_run_without_input_is_started_too(world: World) -> None:
    with world(app) as env:
        handle = env.start_with_message(other, None, ADD, 7, id="o-1")
        assert handle.status() == "pending"
        assert handle.result() == 7
        assert env.start_with_message("other", None, "add", 8, id="o-2").result() == 8


def test_an_ended_run_is_not_begun_again(world: World) -> None:
    with world(app) as env:
        env.start_with_message(other, None, ADD, 7, id="o-1").result()
        with pytest.raises(RunEnded, match="completed"):
            env.start_with_message(other, None, ADD, 8, id="o-1")


def test_what_does_not_fit_is_refused_before_anything_is_sent(world: World) -> None:
    wrong: Any = "five"
    with world(app) as env:
        env.start(other, id="o-1")
        env.run_until_idle()
        with pytest.raises(RunAlreadyExists):
            env.start_with_message(summing, 1, ADD, 1, id="o-1")
        with pytest.raises(InvalidInput):
            env.start_with_message(summing, wrong, ADD, 1, id="s-1")
        with pytest.raises(InvalidInput):
            env.start_with_message(summing, 1, ADD, wrong, id="s-1")
        with pytest.raises(LimitExceeded):
            env.start_with_message(summing, 1, ADD, 1, id="s-1", tags=[str(n) for n in range(11)])
        assert not env.world.services.runs.pending
        assert env.ports.store.get("s-1") is None


@app.workflow
async def passing_on(ctx: Context, n: int) -> int:
    number = await ctx.wait_for_signal(ADD)
    if n > 0:
        await ctx.continue_as_new(passing_on, n - 1)
    return number


def test_the_run_that_continues_it_is_messaged(world: World) -> None:
    with world(app) as env:
        env.start_with_message(passing_on, 1, ADD, 1, id="p-1")
        env.run_until_idle()
        assert env.start_with_message(passing_on, 1, ADD, 2, id="p-1").result() == 2
        with pytest.raises(RunEnded):
            env.start_with_message(passing_on, 1, ADD, 3, id="p-1")


def begun(env: TestEnvironment) -> None:
    handle = env.start_with_message(summing, 2, ADD, 1, id="s-1", message_id="m-1")
    env.start_with_message(summing, 2, ADD, 2, id="s-1", message_id="m-2")
    assert handle.result() == [1, 2]


@pytest.mark.parametrize("lost", [False, True])
def test_a_crash_anywhere_loses_neither_the_run_nor_a_message(lost: bool) -> None:
    clean = TestEnvironment(app)
    begun(clean)
    for number in range(1, len(clean.calls) + 1):
        for after in (False, True):
            env = TestEnvironment(app)
            env.world.lose_wakes_of_killed = lost
            env.crash_at(number, after=after)
            begun(env)
        env = TestEnvironment(app)
        env.faults.freeze("5m", at=number)
        begun(env)


def test_a_start_costs_nothing_where_the_run_exists() -> None:
    env = TestEnvironment(app)
    env.start(summing, 2, id="s-1")
    env.run_until_idle()
    before = len(env.calls)
    env.start_with_message(summing, 2, ADD, 1, id="s-1")
    env.run_until_idle()
    assert "store.create" not in env.calls[before:]


def test_the_envelope_says_all_that_it_takes() -> None:
    env = TestEnvironment(app)
    env.ports.runs.send(
        Deliver(
            run_id="s-1",
            id="m-1",
            name="add",
            body="5",
            start=StartSpec(workflow="summing", version="1", input="1", headers={"traceparent": "00-1"}),
        )
    )
    env.run_until_idle()
    assert env.result("s-1") == [5]
    assert env.get("s-1").headers == {"traceparent": "00-1"}
