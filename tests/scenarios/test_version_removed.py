"""`ctx.removed` lets code be deleted under open runs: what they have recorded of it is passed over."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from durable import App, Branch, Break, Context, Continue, RunBlocked, RunWasCancelled, Signal, Step
from durable.testing import TestEnvironment, assert_replays
from tests.scenarios.conftest import World
from tests.scenarios.replaying import COLD

GO = Signal("go", str)

Code = Callable[[Context], Coroutine[Any, Any, Any]]


def work(n: int) -> int:
    return n


def fails() -> int:
    raise ConnectionError("not now")


async def before(ctx: Context) -> str:
    async def body(ctx: Context, n: int) -> Break[int] | Continue[int]:
        await ctx.step(work, n)
        await ctx.sleep("1m")
        return Break(n) if n == 7 else Continue(n + 1)

    async def part(ctx: Context) -> int:
        await ctx.sleep("10m")
        return await ctx.step(work, 9)

    await ctx.step("charge", work, 1)
    await ctx.loop("poll", body, state=0, history=3)
    await ctx.join("both", Branch("a", part), Branch("b", part))
    ctx.get_version("audit", 2)
    await ctx.sleep("30m")
    await ctx.step(work, 1)
    await ctx.step(work, 2)
    return await ctx.wait_for_signal(GO)


async def after(ctx: Context) -> str:
    ctx.removed("charge", "step")
    ctx.removed("poll", "loop")
    ctx.removed("both", "join")
    ctx.removed("audit", "version")
    ctx.removed("sleep", "sleep")
    ctx.removed("work", "step")
    await ctx.step(work, 2)  # its derived name is still work#2
    return await ctx.wait_for_signal(GO)


async def wrong_kind(ctx: Context) -> str:
    ctx.removed("charge", "sleep")
    return ""


async def forgotten(ctx: Context) -> str:
    ctx.removed("charge", "step")
    ctx.removed("both", "join")
    return await ctx.wait_for_signal(GO)


async def trying(ctx: Context) -> str:
    await ctx.step(Step("flaky", retries=20), fails)
    return ""


async def not_trying(ctx: Context) -> str:
    ctx.removed("flaky", "step")
    return await ctx.wait_for_signal(GO)


async def waiting(ctx: Context) -> str:
    await ctx.wait_for_signal(Signal("never", str))
    return ""


async def not_waiting(ctx: Context) -> str:
    ctx.removed("never", "wait")
    return await ctx.wait_for_signal(GO)


async def many(ctx: Context) -> str:
    async def naps(ctx: Context, n: int) -> None:
        await ctx.sleep("1h")

    await ctx.map("naps", range(20), naps, concurrency=20)
    return ""


async def not_many(ctx: Context) -> str:
    ctx.removed("naps", "map")
    return await ctx.wait_for_signal(GO)


def deployment(fn: Code) -> App[None]:
    app = App("removing")
    app.workflow(name="job")(fn)
    return app


@pytest.mark.parametrize("minutes", [0, 0.5, 2, 4, 7.5, 12, 20, 50, 90])
def test_the_code_may_go_wherever_the_run_stands(minutes: float) -> None:
    env = TestEnvironment(deployment(before), options=COLD)
    handle = env.start("job", id="r")
    env.advance(minutes=minutes)
    env.deploy(deployment(after))
    env.advance(hours=1)
    env.restart()
    handle.send(GO, "gone")
    assert handle.result() == "gone"
    assert env.history("r")[-1].location == "go"
    assert [entry.key for entry in env.history("r")].count("work#2") == 1
    assert_replays(env.export("r"), deployment(after))


@pytest.mark.parametrize(
    ("old", "new"),
    [(trying, not_trying), (waiting, not_waiting), (many, not_many)],
    ids=["attempts", "a wait", "twenty waits"],
)
def test_what_was_under_way_is_given_up(world: World, old: Code, new: Code) -> None:
    env = world(deployment(old))
    handle = env.start("job", id="r")
    env.advance(seconds=30)
    env.deploy(deployment(new))
    handle.send(GO, "goes on")
    assert handle.result() == "goes on"


def test_a_new_run_takes_no_notice(world: World) -> None:
    env = world(deployment(after))
    handle = env.start("job", id="r")
    handle.send(GO, "new")
    assert handle.result() == "new"
    assert [entry.location for entry in env.history("r")] == ["work#2", "go"]


def test_another_kind_of_operation_is_a_divergence(world: World) -> None:
    env = world(deployment(before))
    handle = env.start("job", id="r")
    env.run_until_idle()
    env.deploy(deployment(wrong_kind))
    with pytest.raises(RunBlocked, match='at "charge" the history has a step'):
        handle.result()


def test_what_is_not_named_is_a_divergence(world: World) -> None:
    env = world(deployment(before))
    handle = env.start("job", id="r")
    env.run_until_idle()
    env.deploy(deployment(forgotten))
    with pytest.raises(RunBlocked, match="poll"):
        handle.result()


def test_a_cancellation_of_what_is_gone_replays(world: World) -> None:
    env = world(deployment(waiting))
    handle = env.start("job", id="r")
    env.run_until_idle()
    handle.cancel()
    env.run_until_idle()
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert_replays(env.export("r"), deployment(not_waiting))


def test_a_kind_that_does_not_exist_is_refused(world: World) -> None:
    async def job(ctx: Context) -> str:
        with pytest.raises(ValueError, match="the kind is one of"):
            ctx.removed("charge", "stp")
        return "refused"

    env = world(deployment(job))
    assert env.start("job").result() == "refused"
