"""A wake that is lost delays a run until maintenance finds it; nothing is lost with it."""

from durable import App, Context
from tests.scenarios.conftest import World

app = App("lost")


@app.workflow
async def sleeper(ctx: Context) -> str:
    await ctx.sleep("5m")
    return "awake"


def test_a_lost_start_is_found_within_two_minutes(world: World) -> None:
    env = world(app)
    before = env.now
    env.faults.drop_next()
    env.start(sleeper, id="r")
    env.advance(minutes=2)
    assert env.get("r").status == "suspended"
    assert env.repairs == 1
    assert (env.now - before).total_seconds() == 120


def test_sch_10_a_lost_timer_is_found_within_two_minutes(world: World) -> None:
    env = world(app)
    handle = env.start(sleeper, id="r")
    env.run_until_idle()
    before = env.now
    env.faults.drop_next()
    assert handle.result() == "awake"
    assert (env.now - before).total_seconds() <= 300 + 120
    assert env.repairs == 1


def test_tmr_07_an_idle_system_needs_no_repair(world: World) -> None:
    env = world(app)
    assert env.start(sleeper, id="r").result() == "awake"
    assert env.repairs == 0
