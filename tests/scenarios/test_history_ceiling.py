"""SCL-01, SCL-04: a history that only grows is warned of at a tenth of its ceiling, and blocks its run at it."""

import logging

import pytest

from durable import App, Break, Context, Continue, RunBlocked, RunWasCancelled, Signal
from tests.scenarios.conftest import World

GO = Signal("go", str)
app = App("ceilings")


def nothing() -> None: ...


@app.workflow(max_entries=40)
async def endless(ctx: Context) -> None:
    while True:
        await ctx.step(nothing)


@app.workflow(max_entries=40)
async def just_enough(ctx: Context) -> str:
    for _ in range(40):
        await ctx.step(nothing)
    return "done"


@app.workflow(max_entries=300)
async def looping(ctx: Context) -> int:
    return await ctx.loop("many", turn, state=0, history=5)


async def turn(ctx: Context, n: int) -> Continue[int] | Break[int]:
    await ctx.step(nothing)
    return Continue(n + 1) if n < 500 else Break(n)


@app.workflow(max_entries=20)
async def listens(ctx: Context) -> int:
    heard = 0
    while (await ctx.mailbox.next(GO)).body != "stop":
        heard += 1
    return heard


def test_scl_04_a_plain_loop_without_end_is_warned_of_and_blocked(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    env = world(app)
    with pytest.raises(RunBlocked, match=r"has 40 entries, and its ceiling is 40\. .*ctx\.loop.*ctx\.continue_as_new"):
        env.start(endless, id="r").result()
    assert len(env.history("r")) == 40
    warned = [record for record in caplog.records if "its history has 4 entries" in record.getMessage()]
    assert len(warned) == 1
    assert "ctx.loop(...)" in warned[0].getMessage()
    env.advance("1h")
    assert len(env.history("r")) == 40


def test_scl_01_a_higher_ceiling_lets_the_run_go_on(world: World) -> None:
    env = world(app)
    handle = env.start(listens, id="r")
    for n in range(25):
        handle.send(GO, str(n))
        env.run_until_idle()
    assert env.get("r").status == "blocked"
    higher = App("ceilings")
    higher.workflow(name="listens")(listens.fn)
    env.deploy(higher)
    handle.send(GO, "stop")
    assert handle.result() == 25


def test_a_run_may_have_as_many_entries_as_its_ceiling(world: World) -> None:
    assert world(app).start(just_enough).result() == "done"


def test_scl_01_a_loop_of_the_framework_never_comes_to_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert world(app).start(looping).result() == 500


def test_a_run_at_its_ceiling_can_be_cancelled(world: World) -> None:
    env = world(app)
    handle = env.start(endless, id="r")
    env.run_until_idle()
    handle.cancel()
    env.resume("r")
    with pytest.raises(RunWasCancelled):
        handle.result()
