"""Breaking a rule of the framework blocks the run with a message that says what to do; mended code goes on."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from durable import App, Context, RunBlocked, Signal
from tests.scenarios.conftest import World

GO = Signal("go", int)
Body = Callable[[Context], Coroutine[Any, Any, Any]]


def work() -> str:
    return "ok"


async def mended(ctx: Context) -> str:
    await ctx.sleep(30)
    return await ctx.step("a", work)


async def same_name_twice(ctx: Context) -> str:
    await ctx.sleep(30)
    await ctx.step("a", work)
    return await ctx.step("a", work)


async def never_awaited(ctx: Context) -> str:
    await ctx.sleep(30)
    ctx.step("b", work)  # pyright: ignore[reportUnusedCoroutine]
    return await ctx.step("a", work)


async def taken_for_its_value(ctx: Context) -> str:
    await ctx.sleep(30)
    with suppress(Exception):  # swallowing it must not help
        ctx.step("b", work).upper()  # pyright: ignore - it is wrong on purpose
    return await ctx.step("a", work)


async def deadlocked(ctx: Context) -> str:
    await ctx.sleep(30)
    await asyncio.Event().wait()
    return await ctx.step("a", work)


async def network(ctx: Context) -> str:
    await ctx.sleep(30)
    with suppress(Exception):  # swallowing it must not help
        await asyncio.open_connection("127.0.0.1", 9)
    return await ctx.step("a", work)


def deployment(fn: Body) -> App[None]:
    app = App("misuse")
    app.workflow(name="job")(fn)
    return app


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (same_name_twice, "used twice"),
        (never_awaited, "await"),
        (taken_for_its_value, r"write \(await ctx.step\(...\)\).upper"),
        (deadlocked, "nothing|no operation"),
        (network, "not possible in workflow code"),
    ],
)
def test_rpl_11_misuse_blocks_with_its_message_and_mended_code_goes_on(world: World, body: Body, message: str) -> None:
    env = world(deployment(body))
    handle = env.start(deployment(body).newest("job"), id="r")
    with pytest.raises(RunBlocked, match=message):
        handle.result()
    env.deploy(deployment(mended))
    assert handle.result() == "ok"
