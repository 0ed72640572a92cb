"""Parallel steps keep their results whatever the order in which they end, and whatever dies in between."""

import asyncio

from durable import App, Context
from tests.scenarios.conftest import World

app = App("parallel")


def work(n: int) -> int:
    return n * n


@app.workflow
async def fan_out(ctx: Context) -> list[int]:
    return await asyncio.gather(*(ctx.step(f"square-{n}", work, n) for n in range(4)))


def test_rpl_01_each_parallel_step_has_its_own_result(world: World) -> None:
    env = world(app)
    assert env.start(fan_out, id="r").result() == [0, 1, 4, 9]
    assert sorted(entry.location for entry in env.history("r")) == [f"square-{n}" for n in range(4)]


def test_rpl_01_a_crash_between_two_of_them_changes_nothing(world: World) -> None:
    for n in range(1, 8):
        env = world(app)
        env.crash_at(n, after=True)
        assert env.start(fan_out, id="r").result() == [0, 1, 4, 9]
