"""A call on a limited queue waits for its turn, and whatever becomes of it, the next one has its turn."""

import asyncio

import pytest

from durable import App, Branch, Call, Context, Signal
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World
from tests.scenarios.test_remote_steps_lost import keys, take_task, tell

app = App("limited-calls")
app.queue("narrow", concurrency=1)
GO = Signal("go", str)
UNDER_WAY: list[int] = []


@app.remote_step(queue="narrow", timeout="1h", retries=1)
def narrow(number: int) -> int:
    UNDER_WAY.append(number)
    assert len(UNDER_WAY) == 1
    UNDER_WAY.clear()
    return number * 10


@app.workflow
async def calls(ctx: Context, count: int) -> list[int]:
    return list(await asyncio.gather(*(ctx.call(narrow, number) for number in range(count))))


@app.workflow
async def is_picked_up(ctx: Context, number: int) -> int:
    return await ctx.call(Call(pickup_timeout="10m"), narrow, number)


@app.workflow
async def races(ctx: Context, number: int) -> str:
    async def by_call(ctx: Context) -> str:
        return str(await ctx.call(narrow, number))

    async def by_signal(ctx: Context) -> str:
        return await ctx.wait_for_signal(GO)

    return (await ctx.race("first", Branch("call", by_call), Branch("signal", by_signal))).value


def holders(env: TestEnvironment) -> list[str]:
    state = env.world.services.store.read_lane("queue:narrow", tickets=10)
    return [] if state is None else [*state.lane.holders, *(place.holder for place in state.places)]


def test_one_after_another(world: World) -> None:
    with world(app) as env:
        assert env.start(calls, 3).result() == [0, 10, 20]
        assert holders(env) == []


def test_waiting_for_its_turn_is_not_waiting_for_a_worker(world: World) -> None:
    with world(app) as env:
        env.start(is_picked_up, 1, id="r-1")
        first = take_task(env)
        env.world.services.store.start_task("r-1", first.id, worker="w", now=env.now.timestamp(), expires_at=2e9)
        second = env.start(is_picked_up, 2, id="r-2")
        env.advance("45m")
        assert keys(env, "r-2") == ["narrow?1"]
        tell(env, first, "10")
        assert second.result() == 20
        assert keys(env, "r-2") == ["narrow?1", "narrow"]


def test_once_its_turn_has_come_it_waits_for_a_worker(world: World) -> None:
    with world(app) as env:
        env.start(is_picked_up, 1, id="r-1")
        first = take_task(env)
        env.world.services.store.start_task("r-1", first.id, worker="w", now=env.now.timestamp(), expires_at=2e9)
        second = env.start(is_picked_up, 2, id="r-2")
        env.advance("30m")
        tell(env, first, "10")
        assert take_task(env).run_id == "r-2"
        assert second.result() == 20
        assert keys(env, "r-2") == ["narrow?1", "narrow@1", "narrow?2", "narrow"]


def test_an_attempt_that_is_given_up_makes_room(world: World) -> None:
    with world(app) as env:
        first = env.start(is_picked_up, 1, id="r-1")
        take_task(env)
        second = env.start(is_picked_up, 2, id="r-2")
        assert (second.result(), first.result()) == (20, 10)
        assert holders(env) == []


@pytest.mark.parametrize("waits", [False, True])
def test_a_call_that_nobody_waits_for_makes_room(world: World, waits: bool) -> None:
    with world(app) as env:
        env.start(is_picked_up, 1, id="r-1")
        first = take_task(env)
        racing = env.start(races, 2, id="r-2")
        env.run_until_idle()
        assert len(holders(env)) == 2
        if not waits:
            tell(env, first, "10")
            take_task(env)
        racing.send(GO, "signal")
        assert racing.result() == "signal"
        env.run_until_idle()
        assert not [holder for holder in holders(env) if holder.startswith("r-2")]
