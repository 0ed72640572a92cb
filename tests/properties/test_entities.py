"""Several runs and clients call a few entities, with crashes, losses and duplicates: as if one had asked after the other.

DURABLE_PROGRAMS=2000 runs more of them, DURABLE_FIRST_PROGRAM says where to begin: a failing seed is its own reproduction.
"""

import asyncio
import os
import random
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from durable import App, Context, EntityFailed
from durable.testing import TestEnvironment

PROGRAMS = int(os.environ.get("DURABLE_PROGRAMS", "60"))
FIRST = int(os.environ.get("DURABLE_FIRST_PROGRAM", "0"))

app = App("interleavings")


class Ask(BaseModel):
    id: str
    key: str
    kind: Literal["add", "fail", "slow", "signal"]
    n: int


def doubled(n: int) -> int:
    return 2 * n


@app.entity
class Account(BaseModel):
    balance: int = 0
    done: list[str] = []

    def add(self, id: str, n: int) -> int:
        self.balance += n
        self.done.append(id)
        return self.balance

    def fail(self, id: str, n: int) -> int:
        self.add(id, n)
        raise ValueError(id)

    async def slow(self, ctx: Context, id: str, n: int) -> int:
        before = self.balance
        n = await ctx.step(doubled, n)
        assert before == self.balance
        return self.add(id, n)


@app.workflow
async def asking(ctx: Context, waves: list[list[Ask]]) -> dict[str, int | str]:
    results: dict[str, int | str] = {}

    async def ask(one: Ask) -> None:
        account = ctx.entity(Account, one.key)
        try:
            match one.kind:
                case "add":
                    results[one.id] = await account.call(Account.add, one.id, one.n)
                case "fail":
                    results[one.id] = await account.call(Account.fail, one.id, one.n)
                case "slow":
                    results[one.id] = await account.call(Account.slow, one.id, one.n)
                case "signal":
                    await account.signal(Account.add, one.id, one.n)
        except EntityFailed as error:
            results[one.id] = error.error.message

    for wave in waves:
        await asyncio.gather(*map(ask, wave))
    return results


def waves_of(rng: random.Random, run: int) -> list[list[Ask]]:
    kinds: Any = ["add", "add", "fail", "slow", "signal"]
    return [
        [
            Ask(id=f"{run}.{wave}.{n}", key=rng.choice("ab"), kind=rng.choice(kinds), n=rng.randint(1, 9))
            for n in range(rng.randint(1, 3))
        ]
        for wave in range(rng.randint(1, 3))
    ]


def disturb(env: TestEnvironment, rng: random.Random) -> None:
    for _ in range(rng.randint(0, 3)):
        match rng.choice(["crash", "duplicate", "delay", "freeze", "restart"]):
            case "crash":
                env.crash_at(rng.randint(1, 60), after=rng.random() < 0.5)
            case "duplicate":
                env.faults.duplicate_next()
            case "delay":
                env.faults.delay_next("1m")
            case "freeze":
                env.faults.freeze("5m", at=rng.randint(1, 60))
            case _:
                env.restart()


def check(asked: dict[str, Ask], results: dict[str, int | str], states: dict[str, Account]) -> None:
    """Plays what each entity says it did, one after the other, and compares."""
    for key, state in states.items():
        wanted = {one.id for one in asked.values() if one.key == key and one.kind != "fail"}
        assert set(state.done) == wanted
        assert len(state.done) == len(wanted)
        balance = 0
        for name in state.done:
            one = asked[name]
            balance += doubled(one.n) if one.kind == "slow" else one.n
            assert one.kind == "signal" or results[name] == balance
        assert state.balance == balance
        waves = [(run, int(wave)) for run, wave, _ in (name.split(".") for name in state.done)]
        for run in {run for run, _ in waves}:
            own = [wave for other, wave in waves if other == run]
            assert own == sorted(own), "what a run asked for one after the other was performed in another order"
    assert all(results[one.id] == one.id for one in asked.values() if one.kind == "fail")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
def test_interleaved_calls_equal_a_sequence(seed: int) -> None:
    rng = random.Random(seed)
    env = TestEnvironment(app)
    programs = [waves_of(rng, run) for run in range(rng.randint(2, 4))]
    handles = [env.start(asking, waves, id=f"r-{run}") for run, waves in enumerate(programs)]
    disturb(env, rng)
    results: dict[str, int | str] = {}
    for handle in handles:
        results |= handle.result()
    env.advance("1h")
    asked = {one.id: one for waves in programs for wave in waves for one in wave}
    check(asked, results, {key: env.entity(Account, key).state() for key in "ab"})
