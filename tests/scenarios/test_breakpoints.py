"""A run stands at a breakpoint until it is told to go on, once for each time."""

from typing import Any

import pytest

from durable import App, Break, Context, Continue, NotWaiting, RunEnded
from durable.testing import TestEnvironment

app = App("breakpoints")


@app.workflow
async def careful(ctx: Context) -> str:
    await ctx.breakpoint("before")
    await ctx.sleep("1h")
    await ctx.breakpoint("after")
    return "done"


def test_a_run_stands_at_its_breakpoints_until_an_operator_lets_it_go_on(world: Any) -> None:
    with world(app) as env:
        handle = env.start(careful, id="c")
        env.advance(days=3)
        assert env.get("c").reason == 'breakpoint "before"'
        with pytest.raises(NotWaiting, match='breakpoint "after"'):
            env.continue_breakpoint("c", "after")
        for _ in range(2):
            env.continue_breakpoint("c", "before")
        env.advance(hours=2)
        assert env.get("c").reason == 'breakpoint "after"'
        env.continue_breakpoint("c", "after")
        assert handle.result() == "done"
        with pytest.raises(RunEnded):
            env.continue_breakpoint("c", "after")


def test_continuing_twice_does_not_pass_the_same_breakpoint_of_the_next_round() -> None:
    looping = App("rounds")

    @looping.workflow
    async def rounds(ctx: Context) -> int:
        return await ctx.loop("round", body, state=0)

    async def body(ctx: Context, n: int) -> Any:
        await ctx.breakpoint("stop")
        return Break(n) if n == 1 else Continue(n + 1)

    with TestEnvironment(looping) as env:
        handle = env.start(rounds, id="r")
        env.run_until_idle()
        env.continue_breakpoint("r", "stop")
        env.continue_breakpoint("r", "stop")
        env.run_until_idle()
        assert env.get("r").status == "suspended"
        env.continue_breakpoint("r", "stop")
        assert handle.result() == 1
