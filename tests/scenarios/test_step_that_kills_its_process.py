"""A step that takes its process with it is charged an attempt each time and in the end fails like any other."""

import pytest

from durable import App, Context, RunFailed, Step, StepFailed
from durable.testing import kill_process
from tests.scenarios.conftest import World

app = App("poison")


def eat_all_memory() -> str:
    return "fine"


@app.workflow
async def poisoned(ctx: Context) -> str:
    try:
        return await ctx.step(Step(retries=2), eat_all_memory)
    except StepFailed as failure:
        await ctx.sleep(1)
        return f"given up after {failure.attempts} attempts"


def test_a_step_that_kills_its_process_runs_out_of_attempts(world: World) -> None:
    env = world(app)
    mock = env.mock(eat_all_memory).runs(kill_process)
    assert env.start(poisoned, id="r").result() == "given up after 3 attempts"
    assert len(mock.calls) == 3


def test_a_step_that_kills_its_process_once_is_tried_again(world: World) -> None:
    env = world(app)
    mock = env.mock(eat_all_memory).runs(kill_process).returns("fine after all")
    assert env.start(poisoned, id="r").result() == "fine after all"
    assert len(mock.calls) == 2


@app.workflow
async def only_once(ctx: Context) -> str:
    return await ctx.step(Step(retries=0), eat_all_memory)


def test_without_retries_an_interrupted_attempt_is_the_last(world: World) -> None:
    env = world(app)
    mock = env.mock(eat_all_memory).runs(kill_process)
    with pytest.raises(RunFailed, match="AttemptInterrupted"):
        env.start(only_once, id="r").result()
    assert len(mock.calls) == 1
