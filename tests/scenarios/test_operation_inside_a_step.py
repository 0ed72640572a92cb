"""A workflow operation inside a step blocks the run at once, records nothing, and mended code goes on."""

import pytest

from durable import App, Context, RunBlocked
from tests.scenarios.conftest import World

app = App("inside")
broken: list[bool] = []


@app.workflow
async def job(ctx: Context) -> str:
    def nested() -> str:
        if broken:
            ctx.sleep(1)  # pyright: ignore[reportUnusedCoroutine]
        return "ok"

    return await ctx.step("a", nested)


def test_rpl_11_an_operation_inside_a_step_blocks_and_leaves_no_trace(world: World) -> None:
    env = world(app)
    broken.append(True)
    handle = env.start(job, id="r")
    with pytest.raises(RunBlocked, match="outside the workflow's own code"):
        handle.result()
    assert env.history("r") == []
    broken.clear()
    env.deploy(app)
    assert handle.result() == "ok"
