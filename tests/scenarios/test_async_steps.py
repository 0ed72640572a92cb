"""Async steps run side by side, with the libraries of the author's choice, and are recorded like others."""

import asyncio

from durable import App, Context
from tests.scenarios.conftest import World

app = App("async")


async def negative(n: int) -> int:
    await asyncio.sleep(0)
    return -n


@app.workflow
async def fan_out(ctx: Context) -> list[int]:
    return await asyncio.gather(*(ctx.step(f"negative-{n}", negative, n) for n in range(20)))


def test_every_async_step_ends(world: World) -> None:
    assert world(app).start(fan_out, id="r").result() == [-n for n in range(20)]
