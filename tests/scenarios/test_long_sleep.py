"""A sleep of years ends on time, with no maintenance, whatever was asked in between."""

from datetime import datetime, timedelta

import pytest

from durable import App, Context
from tests.scenarios.conftest import World

app = App("years")


@app.workflow
async def hibernate(ctx: Context, days: float) -> str:
    await ctx.sleep(timedelta(days=days))
    return "spring"


@app.workflow
async def until(ctx: Context, moment: datetime) -> str:
    await ctx.sleep_until(moment)
    return "now"


@pytest.mark.parametrize("days", [0.5 / 24, 8, 40, 366, 5 * 365])
def test_tmr_02_a_sleep_of_any_length_wakes_unaided(world: World, days: float) -> None:
    env = world(app)
    before = env.now
    assert env.start(hibernate, days, id="r").result() == "spring"
    late = env.now - before - timedelta(days=days)
    assert timedelta(0) <= late <= timedelta(seconds=2)
    assert env.repairs == 0


@pytest.mark.parametrize("seconds", [5, 30, 90, 960])
def test_tmr_01_a_sleep_is_never_early_and_at_most_two_seconds_late(world: World, seconds: float) -> None:
    env = world(app)
    before = env.now
    env.start(hibernate, seconds / 86_400, id="r").result()
    assert 0 <= (env.now - before).total_seconds() - seconds <= 2


def test_tmr_05_a_moment_that_has_passed_does_not_suspend(world: World) -> None:
    env = world(app)
    handle = env.start(until, env.now - timedelta(seconds=1), id="r")
    env.run_until_idle()
    assert env.get("r").status == "completed"
    assert handle.result() == "now"
