"""A sleep of zero or less does not suspend, and is recorded once, whatever its sign."""

import pytest

from durable import App, Context
from tests.scenarios.conftest import World

app = App("nothing")


@app.workflow
async def naps(ctx: Context, duration: float) -> str:
    await ctx.sleep(duration)
    await ctx.sleep(duration)
    return "awake"


@pytest.mark.parametrize("duration", [0, -3, -0.5])
def test_tmr_04_zero_and_negative_sleeps_are_recorded_and_take_no_time(world: World, duration: float) -> None:
    env = world(app)
    before = env.now
    handle = env.start(naps, duration, id="r")
    env.run_until_idle()
    assert env.get("r").status == "completed"
    assert handle.result() == "awake"
    assert env.now == before
    assert [(e.location, e.kind) for e in env.history("r")] == [("sleep", "sleep"), ("sleep#2", "sleep")]
