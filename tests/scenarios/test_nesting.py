"""Blocks stand inside one another in every combination, and a run may stop and go on at every place inside."""

import asyncio
from typing import Any

import pytest

from durable import (
    App,
    Backoff,
    Branch,
    Break,
    Context,
    Continue,
    Failed,
    JoinError,
    NonRetryableError,
    Ok,
    Signal,
    Step,
)  # fmt: skip
from durable.testing import TestEnvironment
from tests.scenarios.replaying import played_cold

GO = Signal("go", int)
SURE = Step(retries=20)
app = App("nesting")


class Again(Exception):
    pass


def work(n: int) -> int:
    return n * n


def refuse(n: int) -> int:
    raise NonRetryableError(f"not {n}")


async def nap(ctx: Context, n: int) -> int:
    await ctx.sleep(f"{n}m")
    return await ctx.step(SURE, work, n)


async def stumble(ctx: Context, n: int) -> int:
    await ctx.sleep(f"{n}m")
    return await ctx.step(SURE, refuse, n)


async def inner_loop(ctx: Context, start: int) -> int:
    async def inner(ctx: Context, n: int) -> Break[int] | Continue[int]:
        value = await nap(ctx, 1)
        return Break(n + value) if n >= start + 2 else Continue(n + value)

    return await ctx.loop("inner", inner, state=start, history=2)


async def inner_join(ctx: Context, n: int) -> int:
    return sum(await ctx.join("both", Branch("a", nap, n), Branch("b", nap, n + 1)))


async def inner_race(ctx: Context, n: int) -> int:
    return (
        await ctx.race("either", Branch("slow", nap, n + 2), Branch("bad", stumble, 1), Branch("quick", nap, n))
    ).value


async def inner_try(ctx: Context, n: int) -> int:
    async def body(ctx: Context) -> int:
        return await inner_join(ctx, n) + await stumble(ctx, n)

    return 1 if isinstance(await ctx.try_block("attempt", body), Failed) else 0


async def inner_retrying(ctx: Context, n: int) -> int:
    rounds = await ctx.step(SURE, work, 0)

    async def body(ctx: Context) -> int:
        nonlocal rounds
        rounds += 1
        value = await nap(ctx, n)
        if ctx.now().minute < 3:
            raise Again
        return value

    return await ctx.retrying("again", body, retries=50, backoff=Backoff(60, max=60))


async def inner_wait(ctx: Context, n: int) -> int:
    return await ctx.wait_until(SURE, count_to, state=n, every="1m")


def count_to(n: int) -> Break[int] | Continue[int]:
    return Break(n) if n >= 3 else Continue(n + 1)


async def inner_map(ctx: Context, n: int) -> int:
    outcomes = await ctx.try_map("items", range(1, 4), nap, concurrency=2, enough=2)
    return len(outcomes.values) + sum(await ctx.map("all", range(1, 3), nap))


async def inner_tasks(ctx: Context, n: int) -> int:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ctx.step(f"t{k}", work, k)) for k in range(n)]
        await asyncio.sleep(60)
    return sum(task.result() for task in tasks)


INNER = {
    "loop": inner_loop, "join": inner_join, "race": inner_race, "try": inner_try, "retrying": inner_retrying,
    "wait": inner_wait, "map": inner_map, "tasks": inner_tasks,
}  # fmt: skip


async def in_loop(ctx: Context, inner: Any) -> Any:
    async def body(ctx: Context, seen: list[int]) -> Break[list[int]] | Continue[list[int]]:
        value = await inner(ctx, len(seen) + 1)
        await ctx.sleep("1m", name="between")
        return Break([*seen, value]) if len(seen) == 3 else Continue([*seen, value])

    return await ctx.loop("outer", body, state=list[int](), history=2)


async def in_join(ctx: Context, inner: Any) -> Any:
    return list(await ctx.join("outer", Branch("x", inner, 1), Branch("y", inner, 2)))


async def in_race(ctx: Context, inner: Any) -> Any:
    winner = await ctx.race("outer", Branch("x", inner, 2), Branch("y", nap, 500), Branch("z", stumble, 1))
    return [winner.key, winner.value]


async def in_try(ctx: Context, inner: Any) -> Any:
    async def body(ctx: Context) -> int:
        value = await inner(ctx, 1)
        await ctx.join("broken", Branch("x", inner, 2), Branch("z", stumble, 1))
        return value

    outcome = await ctx.try_block("outer", body)
    good = await ctx.try_block("good", lambda ctx: inner(ctx, 1))
    return [isinstance(outcome, Failed), isinstance(good, Ok)]


async def in_retrying(ctx: Context, inner: Any) -> Any:
    async def body(ctx: Context) -> int:
        value = await inner(ctx, 1)
        if await ctx.step(SURE, count_rounds, ctx.now().minute) < 20:
            raise Again
        return value

    await ctx.retrying("outer", body, retries=50, backoff=Backoff(60, max=60))
    return []


def count_rounds(minute: int) -> int:
    return minute


async def in_map(ctx: Context, inner: Any) -> Any:
    return await ctx.map("outer", [1, 2, 3], inner, concurrency=2)


async def in_try_map(ctx: Context, inner: Any) -> Any:
    async def item(ctx: Context, n: int) -> int:
        return await (stumble(ctx, n) if n == 2 else inner(ctx, n))

    result = await ctx.try_map("outer", [1, 2, 3], item)
    return [result.values, [index for index, _ in result.failures]]


OUTER = {
    "loop": in_loop, "join": in_join, "race": in_race, "try": in_try, "retrying": in_retrying, "map": in_map,
    "try_map": in_try_map,
}  # fmt: skip


@app.workflow
async def nested(ctx: Context, blocks: tuple[str, str]) -> list[Any]:
    outer, inner = blocks
    result = await OUTER[outer](ctx, INNER[inner])
    await ctx.sleep("1h", name="afterwards")
    result.append(await ctx.step("last", work, 3))
    return result


PAIRS = [(outer, inner) for outer in OUTER for inner in INNER]
IDS = [f"{inner} in {outer}" for outer, inner in PAIRS]


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_it_stops_and_goes_on_at_every_place_inside(pair: tuple[str, str]) -> None:
    warm = TestEnvironment(app)
    expected = warm.start(nested, pair, id="r").result()
    assert played_cold(nested, app, input=pair) == expected


@pytest.mark.parametrize(
    "pair",
    [("join", "loop"), ("race", "try"), ("try", "join"), ("map", "join")],
    ids=lambda pair: f"{pair[1]} in {pair[0]}",
)
def test_dying_anywhere_changes_nothing(pair: tuple[str, str]) -> None:
    TestEnvironment(app).run_crash_matrix(nested, pair)


@app.workflow
async def small_loops(ctx: Context) -> list[int]:
    async def inner(ctx: Context, n: int) -> Break[int] | Continue[int]:
        value = await ctx.step(SURE, work, n)
        return Break(value) if n % 2 else Continue(n + 1)

    async def outer(ctx: Context, seen: list[int]) -> Break[list[int]] | Continue[list[int]]:
        value = await ctx.loop("inner", inner, state=2 * len(seen), history=1)
        await ctx.sleep("1m")
        return Break([*seen, value]) if seen else Continue([*seen, value])

    return await ctx.loop("outer", outer, state=list[int](), history=1)


def test_loops_in_loops_whatever_dies() -> None:
    TestEnvironment(app).run_crash_matrix(small_loops)


@app.workflow
async def messages_inside(ctx: Context) -> list[int]:
    async def listens(ctx: Context) -> int:
        return (await ctx.mailbox.next(GO)).body

    async def body(ctx: Context, seen: list[int]) -> Break[list[int]] | Continue[list[int]]:
        pair = await ctx.join("pair", {"a": listens, "b": listens})
        return Break([*seen, *pair.values()]) if len(seen) == 4 else Continue([*seen, *pair.values()])

    try:
        return sorted(await ctx.loop("outer", body, state=list[int](), history=1))
    except JoinError:
        return []


def six(env: TestEnvironment, handle: Any) -> None:
    for n in range(6):
        handle.send(GO, n, id=f"m{n}")
        env.advance(minutes=1)


def test_messages_reach_joins_in_loops_once_each() -> None:
    assert played_cold(messages_inside, app, script=six) == list(range(6))


def test_messages_reach_joins_in_loops_whatever_dies() -> None:
    TestEnvironment(app).run_crash_matrix(messages_inside, script=six)
