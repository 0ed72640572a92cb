"""A terminated run ends at once, whatever it waits for, and nothing of it runs afterwards."""

import pytest

from durable import App, Context, RunWasCancelled
from tests.scenarios.conftest import World

app = App("terminate")


def after() -> str:
    return "ran"


@app.workflow
async def sleeper(ctx: Context) -> str:
    await ctx.sleep(10)
    return await ctx.step(after)


def test_can_05_not_one_line_runs_after_a_run_is_terminated(world: World) -> None:
    env = world(app)
    mock = env.mock(after).returns("ran")
    handle = env.start(sleeper, id="r")
    env.run_until_idle()
    env.terminate("r")
    env.advance(hours=1)
    assert mock.calls == []
    with pytest.raises(RunWasCancelled):
        handle.result()


def test_can_06_other_runs_are_untouched(world: World) -> None:
    env = world(app)
    handles = [env.start(sleeper, id=f"r{n}") for n in range(3)]
    env.run_until_idle()
    env.terminate("r1")
    assert [handles[n].result() for n in (0, 2)] == ["ran", "ran"]


def test_can_07_terminating_an_ended_run_changes_nothing(world: World) -> None:
    env = world(app)
    env.start(sleeper, id="r").result()
    env.terminate("r")
    assert env.get("r").status == "completed"
