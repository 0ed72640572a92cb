"""A loop goes on where it was, keeps only its state, and gives every message to one iteration."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from durable import App, Break, Context, Continue, RunBlocked, RunFailed, Signal, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World
from tests.scenarios.replaying import played_cold

ITEM = Signal("item", int)
SURE = Step(retries=20)
app = App("loops")
executed: list[int] = []


@dataclass(frozen=True)
class Total:
    count: int
    sum: int


def square(n: int) -> int:
    return n * n


async def summing(ctx: Context, total: Total) -> Break[int] | Continue[Total]:
    executed.append(total.count)
    squared = await ctx.step(SURE, square, total.count)
    await ctx.sleep("1m")
    if total.count == 7:
        return Break(total.sum + squared)
    return Continue(Total(total.count + 1, total.sum + squared))


async def collecting(ctx: Context, seen: list[int]) -> Break[list[int]] | Continue[list[int]]:
    message = await ctx.mailbox.next(ITEM)
    if message.body < 0:
        return Break(seen)
    doubled = await ctx.step(SURE, square, message.body)
    return Continue([*seen, doubled])


async def counting(ctx: Context) -> Break[str] | Continue[None]:
    return Break("stop") if (await ctx.mailbox.next(ITEM)).body < 0 else Continue()


async def for_ever(ctx: Context) -> None:
    if (await ctx.mailbox.next(ITEM)).body < 0:
        raise ValueError("the end of for ever")


async def forgets(ctx: Context, n: int) -> Break[int] | Continue[int]:
    await ctx.step(SURE, square, n)
    return None  # type: ignore[return-value]


async def leaves_a_task(ctx: Context, n: int) -> Break[int] | Continue[int]:
    left = asyncio.ensure_future(ctx.sleep("1 day", name="left behind"))
    await ctx.step(SURE, square, n)
    return Break(n) if n == 5 or left.done() else Continue(n + 1)


@app.workflow
async def total(ctx: Context) -> int:
    return await ctx.loop("sum", summing, state=Total(0, 0), history=3)


@app.workflow
async def collected(ctx: Context) -> list[int]:
    return await ctx.loop("collect", collecting, state=list[int](), history=2)


@app.workflow
async def stateless(ctx: Context) -> str:
    return await ctx.loop("count", counting, history=2)


@app.workflow
async def endless(ctx: Context) -> str:
    return await ctx.loop("ever", for_ever, history=2)


@app.workflow
async def forgetful(ctx: Context) -> int:
    return await ctx.loop("forget", forgets, state=0)


@app.workflow
async def tidy(ctx: Context) -> int:
    return await ctx.loop("tidy", leaves_a_task, state=0, history=2)


@app.workflow
async def twice(ctx: Context) -> list[int]:
    first = await ctx.loop("sum", summing, state=Total(6, 0), history=1)
    await ctx.sleep("1h")
    return [first, await ctx.loop("again", summing, state=Total(5, 0), history=2)]


def items(env: TestEnvironment, handle: Any) -> None:
    for n in (1, 2, 3, 4, 5, -1):
        handle.send(ITEM, n, id=f"m{n}")
        env.advance(minutes=1)


def test_it_ends_with_the_value_of_its_break(world: World) -> None:
    assert world(app).start(total, id="r").result() == sum(n * n for n in range(8))


def test_past_iterations_are_not_executed_again(world: World) -> None:
    env = world(app)
    handle = env.start(total, id="r")
    env.advance(seconds=60 * 6 + 1)
    executed.clear()
    env.restart()
    assert handle.result() == 140
    assert min(executed) == 6


def test_every_message_goes_to_one_iteration() -> None:
    assert played_cold(collected, app, script=items) == [1, 4, 9, 16, 25]


def test_a_loop_without_state_goes_on(world: World) -> None:
    env = world(app)
    handle = env.start(stateless, id="r")
    items(env, handle)
    assert handle.result() == "stop"


def test_an_error_of_the_body_ends_the_loop(world: World) -> None:
    env = world(app)
    handle = env.start(endless, id="r")
    items(env, handle)
    with pytest.raises(RunFailed, match="the end of for ever"):
        handle.result()


def test_a_forgotten_return_is_named(world: World) -> None:
    with pytest.raises(RunFailed, match=r"returned None in iteration 0: return Continue.*missing return"):
        world(app).start(forgetful, id="r").result()


def test_what_an_iteration_leaves_running_ends_with_it() -> None:
    assert played_cold(tidy, app) == 5


def test_two_loops_after_each_other(world: World) -> None:
    assert world(app).start(twice, id="r").result() == [36 + 49, 25 + 36 + 49]
    assert played_cold(twice, app) == [36 + 49, 25 + 36 + 49]


def test_a_loop_of_many_iterations_keeps_its_history_small(world: World) -> None:
    env = world(app)
    handle = env.start(collected, id="r")
    env.run_until_idle()
    for n in range(30):
        handle.send(ITEM, 1, id=f"n{n}")
        env.restart()
        env.advance(seconds=1)
    assert len(env.history("r")) < 15
    handle.send(ITEM, -1)
    assert handle.result() == [1] * 30


def test_another_name_is_found_before_anything_new_runs(world: World) -> None:
    renamed = App("loops")

    @renamed.workflow(name="total")
    async def other(ctx: Context) -> int:
        return await ctx.loop("other", summing, state=Total(0, 0), history=3)

    env = world(app)
    handle = env.start(total, id="r")
    env.advance(minutes=5)
    mock = env.mock(square).returns(0)
    env.deploy(renamed)
    with pytest.raises(RunBlocked, match="sum"):
        handle.result()
    assert mock.calls == []
    env.deploy(app)
    env.mock(square).runs(square)
    assert handle.result() == 140


@pytest.mark.parametrize("workflow", [total, twice, tidy], ids=lambda one: one.name)
def test_every_prefix_of_its_history_replays(workflow: Any) -> None:
    played_cold(workflow, app)


def test_dying_anywhere_changes_nothing() -> None:
    TestEnvironment(app).run_crash_matrix(collected, script=items)
