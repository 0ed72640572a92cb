"""A run whose invocations die again and again without a result is given up, and says so."""

import pytest

from durable import App, Context, RunDead
from tests.scenarios.conftest import World

app = App("dead")


def work() -> str:
    return "done"


@app.workflow
async def doomed(ctx: Context) -> str:
    return await ctx.step(work)


def test_a_run_is_dead_after_ten_dead_turns(world: World) -> None:
    env = world(app)
    handle = env.start(doomed, id="r")
    for _ in range(11):
        env.crash_at(2)
        env.advance(minutes=6)
    with pytest.raises(RunDead, match="invocations in a row"):
        handle.result()
    assert env.get("r").status == "dead"
