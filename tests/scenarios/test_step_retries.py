"""A failed step is tried again after its backoff, which survives the death of every process, and no more often than it says."""

from itertools import pairwise

import pytest

from durable import App, Backoff, Context, RunFailed, Step, StepFailed
from tests.scenarios.conftest import World

app = App("retries")


class Unreachable(Exception):
    pass


def call() -> str:
    raise Unreachable("nobody answers")


@app.workflow
async def default(ctx: Context) -> str:
    return await ctx.step(call)


@app.workflow
async def slow(ctx: Context) -> str:
    return await ctx.step(Step(retries=4, backoff=Backoff(120, factor=2, max="1h")), call)


def test_rty_02_the_default_is_three_retries(world: World) -> None:
    env = world(app)
    mock = env.mock(call).raises(Unreachable("no"))
    with pytest.raises(RunFailed) as failure:
        env.start(default, id="r").result()
    assert len(mock.calls) == 4
    assert "4 attempts" in str(failure.value)


def test_rty_08_the_gaps_between_attempts_are_the_backoff_across_restarts(world: World) -> None:
    env = world(app)
    times: list[float] = []

    def attempt() -> str:
        times.append(env.now.timestamp())
        env.restart()
        if len(times) < 5:
            raise Unreachable("not yet")
        return "at last"

    env.mock(call).runs(attempt)
    assert env.start(slow, id="r").result() == "at last"
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert [round(gap) for gap in gaps] == [120, 240, 480, 960]
    assert env.repairs == 0


def test_a_step_that_succeeds_at_last_ran_once_more_for_each_failure(world: World) -> None:
    env = world(app)
    mock = env.mock("call").raises(Unreachable("1")).raises(Unreachable("2")).returns("ok")
    assert env.start(default, id="r").result() == "ok"
    assert len(mock.calls) == 3


def test_an_exhausted_step_raises_what_the_last_attempt_raised(world: World) -> None:
    env = world(app)
    env.mock(call).raises(Unreachable("last words"))
    with pytest.raises(RunFailed) as failure:
        env.start(default, id="r").result()
    assert failure.value.error is not None
    assert failure.value.error.cause is None or failure.value.error.cause.message == "last words"
    assert "last words" in str(failure.value)
    assert issubclass(StepFailed, Exception)
