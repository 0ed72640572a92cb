"""Whatever call an invocation dies at: operations are performed once, in order, and answers reach their callers."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Context, EntityFailed
from durable.testing import TestEnvironment

app = App("crashes-of-entities")


def count_up(n: int) -> int:
    return n + 1


@app.entity
class Counter(BaseModel):
    value: int = 0
    log: list[str] = []

    def add(self, n: int) -> int:
        if n < 0:
            raise ValueError("only up")
        self.value += n
        self.log.append(f"add {n}")
        return self.value

    async def step(self, ctx: Context) -> int:
        self.value = await ctx.step(count_up, self.value)
        await ctx.sleep("10m")
        self.log.append("step")
        return self.value


@app.workflow
async def counting(ctx: Context) -> list[Any]:
    counter = ctx.entity(Counter, "k")
    first = await counter.call(Counter.add, 2)
    try:
        await counter.call(Counter.add, -1)
    except EntityFailed as error:
        failed = error.error.message
    else:
        failed = "did not"
    await counter.signal(Counter.add, 10)
    stepped = await counter.call(Counter.step)
    state = await counter.state()
    return [first, failed, stepped, state.value, state.log]


@app.workflow
async def side_by_side(ctx: Context) -> list[int]:
    one, two = ctx.entity(Counter, "one"), ctx.entity(Counter, "two")
    return list(await asyncio.gather(*(entity.call(Counter.add, n) for n in (1, 2) for entity in (one, two))))


def test_outcome_and_history_are_those_of_the_clean_run() -> None:
    env = TestEnvironment(app)
    assert len(env.run_crash_matrix(counting).calls) >= 60
    env.run_crash_matrix(side_by_side)


def clients(env: TestEnvironment) -> None:
    assert env.entity(Counter, "k", id="a").call(Counter.add, 1) == 1
    env.entity(Counter, "k", id="b").signal(Counter.add, 2)
    env.entity(Counter, "k", id="t").delayed("1h", id="later").signal(Counter.add, 100)
    env.entity(Counter, "k", id="u").delayed("2h", id="later").signal(Counter.add, 200)
    with pytest.raises(ValueError, match="only up"):
        env.entity(Counter, "k", id="c").call(Counter.add, -1)
    assert env.entity(Counter, "k", id="d").call(Counter.add, 3) == 6
    assert env.entity(Counter, "k", id="d").call(Counter.add, 3) == 6
    env.advance("3h")
    assert env.entity(Counter, "k").state().log == ["add 1", "add 2", "add 3", "add 200"]


@pytest.mark.parametrize("lost", [False, True])
def test_clients_have_their_answers_after_every_crash(lost: bool) -> None:
    clean = TestEnvironment(app)
    clients(clean)
    for number in range(1, len(clean.calls) + 1):
        for after in (False, True):
            env = TestEnvironment(app)
            env.world.lose_wakes_of_killed = lost
            env.crash_at(number, after=after)
            clients(env)
        env = TestEnvironment(app)
        env.faults.freeze("5m", at=number)
        clients(env)
    for name in sorted(set(clean.calls)):
        for after in (False, True):
            env = TestEnvironment(app)
            env.faults.fail_next_call(name, after=after)
            clients(env)
