"""Code that was changed before what a run has done is found before anything new runs, and the old code heals the run."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from durable import App, Branch, Break, Context, Continue, Deadlock, RunBlocked, Signal, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

GO = Signal("go", str)
Body = Callable[[Context], Awaitable[str]]


def charge() -> str:
    return "charged"


def ship() -> str:
    return "shipped"


def refund() -> str:
    return "refunded"


async def nap(ctx: Context) -> str:
    await ctx.sleep("1h")
    return "slept"


async def original(ctx: Context) -> str:
    first = await ctx.step(charge)
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="rest")
    return f"{first}, {second}"


async def added_before(ctx: Context) -> str:
    await ctx.step(refund)
    return await original(ctx)


async def added_between(ctx: Context) -> str:
    first = await ctx.step(charge)
    await ctx.step(refund)
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="rest")
    return f"{first}, {second}"


async def sleep_added_before(ctx: Context) -> str:
    await ctx.sleep("1h", name="first")
    return await original(ctx)


async def message_added_before(ctx: Context) -> str:
    await ctx.mailbox.next(GO)
    return await original(ctx)


async def step_removed(ctx: Context) -> str:
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="rest")
    return second


async def sleep_removed(ctx: Context) -> str:
    first = await ctx.step(charge)
    return f"{first}, {await ctx.step(ship)}"


async def renamed(ctx: Context) -> str:
    first = await ctx.step("charge-card", charge)
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="rest")
    return f"{first}, {second}"


async def other_function(ctx: Context) -> str:
    first = await ctx.step("charge", refund)
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="rest")
    return f"{first}, {second}"


async def reordered(ctx: Context) -> str:
    second = await ctx.step(ship)
    first = await ctx.step(charge)
    await ctx.sleep("1h", name="rest")
    return f"{first}, {second}"


async def step_became_sleep(ctx: Context) -> str:
    await ctx.sleep("1h", name="charge")
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="rest")
    return second


async def sleep_became_wait(ctx: Context) -> str:
    first = await ctx.step(charge)
    second = await ctx.step(ship)
    await ctx.mailbox.next(Signal("rest", str), timeout="1h", default=None)
    return f"{first}, {second}"


async def sleep_renamed(ctx: Context) -> str:
    first = await ctx.step(charge)
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="pause")
    return f"{first}, {second}"


async def moved_into_a_join(ctx: Context) -> str:
    async def one(ctx: Context) -> str:
        return await ctx.step(charge)

    (first,) = await ctx.join("all", *[Branch("a", one)])
    second = await ctx.step(ship)
    await ctx.sleep("1h", name="rest")
    return f"{first}, {second}"


async def moved_into_a_block(ctx: Context) -> str:
    outcome = await ctx.try_block("block", original)
    return str(outcome.unwrap())


async def moved_into_a_loop(ctx: Context) -> str:
    async def body(ctx: Context) -> Break[str] | Continue[None]:
        return Break(await original(ctx))

    return await ctx.loop("loop", body)


async def ends_early(ctx: Context) -> str:
    return await ctx.step(charge)


async def swallows(ctx: Context) -> str:
    try:
        return await reordered(ctx)
    except Exception:  # noqa: BLE001 - the error must not be hidden by that
        return await ctx.step(refund)


CHANGES: list[Body] = [
    added_before, added_between, sleep_added_before, message_added_before, step_removed, sleep_removed, renamed,
    other_function, reordered, step_became_sleep, sleep_became_wait, sleep_renamed, moved_into_a_join,
    moved_into_a_block, moved_into_a_loop, ends_early, swallows,
]  # fmt: skip


def deployment(fn: Any) -> App[None]:
    app = App("changing")
    app.workflow(name="job")(fn)
    return app


@pytest.mark.parametrize("changed", CHANGES, ids=lambda fn: fn.__name__)
def test_a_change_before_recorded_work_blocks_and_the_old_code_heals(world: World, changed: Body) -> None:
    env = world(deployment(original))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    before = env.history("r")
    env.deploy(deployment(changed))
    handle.send(GO, "hello")
    mocks = [env.mock(fn).returns("new") for fn in (charge, ship, refund)]
    with pytest.raises(RunBlocked, match="no longer matches the history"):
        handle.result()
    assert [mock.calls for mock in mocks] == [[], [], []]
    assert env.history("r") == before
    env.deploy(deployment(original))
    assert handle.result() == "charged, shipped"


@pytest.mark.parametrize("changed", CHANGES, ids=lambda fn: fn.__name__)
def test_it_is_found_at_every_moment_of_the_run(changed: Body) -> None:
    """Also where a process has died: then no settle says what the run waits for, and only what is recorded counts."""
    for dies_at in range(2, 7):
        env = TestEnvironment(deployment(original))
        handle = env.start(env.app.newest("job"), id="r")
        env.crash_at(dies_at, after=True)
        env.world.deliver()
        done = [entry.location for entry in env.history("r") if entry.kind == "step"]
        env.deploy(deployment(changed))
        mocks = {fn.__name__: env.mock(fn).returns("new") for fn in (charge, ship, refund)}
        with contextlib.suppress(Deadlock, RunBlocked, TimeoutError):
            handle.result(timeout="20m")
        assert not [name for name in done if mocks[name].calls], dies_at


async def looping(ctx: Context) -> str:
    async def body(ctx: Context, n: int) -> Break[str] | Continue[int]:
        await ctx.step(Step(retries=20), charge)
        await ctx.sleep("1h")
        return Break("over") if n == 3 else Continue(n + 1)

    return await ctx.loop("poll", body, state=0, history=2)


async def looping_otherwise(ctx: Context) -> str:
    async def body(ctx: Context, n: int) -> Break[str] | Continue[int]:
        await ctx.step(Step(retries=20), ship)
        await ctx.sleep("1h")
        return Break("over") if n == 3 else Continue(n + 1)

    return await ctx.loop("poll", body, state=0, history=2)


async def no_loop(ctx: Context) -> str:
    return await original(ctx)


@pytest.mark.parametrize("minutes", [30, 90, 150, 200])
@pytest.mark.parametrize("changed", [looping_otherwise, no_loop], ids=lambda fn: fn.__name__)
def test_a_change_in_a_loop_is_found_in_every_iteration(world: World, changed: Body, minutes: int) -> None:
    env = world(deployment(looping))
    handle = env.start(env.app.newest("job"), id="r")
    env.advance(minutes=minutes)
    env.deploy(deployment(changed))
    mock = env.mock(ship).returns("new")
    with pytest.raises(RunBlocked, match="no longer matches"):
        handle.result()
    assert mock.calls == []
    env.deploy(deployment(looping))
    assert handle.result() == "over"


async def ends_with_more(ctx: Context) -> str:
    return f"{await original(ctx)}, {await ctx.step(refund)}, {await ctx.race('r', Branch('a', nap))}"


def test_what_is_added_after_recorded_work_is_no_divergence(world: World) -> None:
    env = world(deployment(original))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    env.deploy(deployment(ends_with_more))
    assert handle.result() == "charged, shipped, refunded, Winner(key='a', value='slept')"
