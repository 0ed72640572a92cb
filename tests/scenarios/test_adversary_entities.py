"""Whatever an operation does, its entity lives on; whoever ends an entity, every caller is told."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Context, EntityFailed, RunEnded, RunFailed, Signal
from durable.testing import TestEnvironment

app = App("entities")
GO = Signal("go", str)
RUN = "entity:Till:t"


@app.entity
class Till(BaseModel):
    taken: int = 0

    def take(self, n: int) -> int:
        self.taken += n
        return self.taken

    async def go_away(self, ctx: Context) -> None:
        await ctx.continue_as_new(takes)

    async def cancel_a_task(self, ctx: Context) -> None:
        task = asyncio.create_task(ctx.wait_for_signal(GO))
        await ctx.sleep("1s")
        task.cancel()
        await task

    async def wait(self, ctx: Context) -> str:
        return await ctx.wait_for_signal(GO)


@app.workflow
async def waits(ctx: Context) -> str:
    return await ctx.entity(Till, "t").call(Till.wait)


@app.workflow
async def takes(ctx: Context) -> int:
    return await ctx.entity(Till, "t").call(Till.take, 1)


@pytest.mark.parametrize("operation", [Till.go_away, Till.cancel_a_task])
def test_an_operation_that_gives_up_is_a_failure_and_the_entity_lives_on(operation: Any) -> None:
    with TestEnvironment(app) as env:
        till = env.entity(Till, "t")
        till.call(Till.take, 2)
        with pytest.raises(EntityFailed):
            till.call(operation)
        env.restart()
        assert till.call(Till.take, 1) == 3


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
def test_the_caller_of_an_operation_that_is_under_way_is_told_that_its_entity_was_ended(mode: Any) -> None:
    with TestEnvironment(app) as env:
        first, second = env.start(waits), env.start(takes)
        env.run_until_idle()
        env.cancel(RUN, mode)
        for handle in (first, second):
            with pytest.raises(RunFailed, match="RunEnded"):
                handle.result()
        with pytest.raises(RunEnded):
            env.entity(Till, "t").call(Till.take, 1)


def test_an_answer_that_was_recorded_reaches_its_caller_though_the_entity_is_ended() -> None:
    for number in range(1, 12):
        env = TestEnvironment(app)
        handle = env.start(takes)
        assert env.world.deliver()
        env.crash_at(number)
        env.world.deliver()
        if env.ports.store.get(RUN) is not None:
            env.terminate(RUN)
        env.advance(minutes=10)
        with suppress(RunFailed):
            assert handle.result() == 1
        record = env.get(handle.id)
        assert record.status == "completed" or "RunEnded" in str(record.error)
