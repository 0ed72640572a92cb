"""Code that no longer matches a run's history blocks the run, before anything new has run; the old code heals it."""

import pytest

from durable import App, Context, RunBlocked
from tests.scenarios.conftest import World


def charge() -> str:
    return "charged"


def refund() -> str:
    return "refunded"


async def old(ctx: Context) -> str:
    await ctx.sleep(30)
    first = await ctx.step(charge)
    await ctx.sleep(60)
    return first


async def swapped(ctx: Context) -> str:
    first = await ctx.step(charge)
    await ctx.sleep(30)
    await ctx.sleep(60)
    return first


async def extended(ctx: Context) -> str:
    first = await old(ctx)
    return f"{first}, {await ctx.step(refund)}"


def deployment(fn: object) -> App[None]:
    app = App("changing")
    app.workflow(name="job")(fn)  # type: ignore[call-overload]
    return app


def test_rpl_03_reordered_code_blocks_the_run_and_the_old_code_heals_it(world: World) -> None:
    env = world(deployment(old))
    handle = env.start(deployment(old).newest("job"), id="r")
    env.run_until_idle()
    mock = env.mock(charge).returns("charged")
    env.deploy(deployment(swapped))
    with pytest.raises(RunBlocked, match="charge"):
        handle.result()
    assert mock.calls == []
    env.deploy(deployment(old))
    assert handle.result() == "charged"


def test_ver_01_code_may_be_added_after_what_a_run_has_done(world: World) -> None:
    env = world(deployment(old))
    handle = env.start(deployment(old).newest("job"), id="r")
    env.advance(seconds=40)
    env.deploy(deployment(extended))
    assert handle.result() == "charged, refunded"
