"""A run that is cancelled, in whatever state and mode, ends and leaves nothing behind, wherever an invocation dies meanwhile."""

from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Backoff, Call, Context, Event, Signal, Step
from durable.testing import TestEnvironment, kill_process

app = App("cancelling")
app.queue("narrow", concurrency=1)
GO = Signal("go", str)
PAID = Event("paid", int)
done: list[str] = []


def act() -> str:
    done.append("act")
    return "acted"


def undo(result: str) -> None:
    done.append("undo")


@app.remote_step(queue="narrow", timeout="1h", retries=0)
def never() -> str:
    return kill_process()


@app.remote_step(queue="open", timeout="1h", retries=3)
def fails() -> str:
    raise ValueError("no")


@app.entity
class Till(BaseModel):
    async def wait(self, ctx: Context) -> str:
        return await ctx.wait_for_signal(GO)


@app.workflow
async def holds(ctx: Context) -> str:
    return await ctx.call(never)


@app.workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


def submit(token: str) -> None:
    """Nobody answers."""


async def wait(ctx: Context, what: str) -> str:
    match what:
        case "limited" | "dispatched":
            return await ctx.call(never)
        case "pausing":
            return await ctx.call(Call("fails", backoff=Backoff(base="10m", max="1h")), fails)
        case "callback":
            return await ctx.callback("cb", submit, str, timeout="1 day", heartbeat="1m")
        case "event":
            return str(await ctx.wait_for_event(PAID))
        case "child":
            return await ctx.child(waiting, id="c")
        case _:
            return await ctx.entity(Till, "t").call(Till.wait)


@app.workflow
async def run(ctx: Context, what: str) -> str:
    await ctx.step(Step("act").undo(undo), act)
    return await wait(ctx, what)


STATES = ["limited", "dispatched", "pausing", "callback", "event", "child", "entity"]


def begun(what: str) -> TestEnvironment:
    done.clear()
    env = TestEnvironment(app)
    if what == "limited":
        env.start(holds, id="before")
        env.run_until_idle()
    env.start(run, what, id="r")
    env.advance(seconds=45)
    assert env.get("r").status == "suspended"
    return env


def check(env: TestEnvironment, what: str, mode: str) -> None:
    record, store = env.get("r"), env.ports.store
    assert (record.status, record.outbox, record.lease_owner) == ("cancelled", None, None)
    assert done.count("undo") == (1 if mode == "compensate" else 0) or done.count("undo") > 1
    assert not store.subscriptions("paid", cursor=None, limit=10).subscriptions
    state = store.read_lane("queue:narrow", tickets=10)
    names = [] if state is None else [*state.lane.holders, *(place.holder for place in state.places)]
    assert [name.partition("|")[0] for name in names] == (["before"] if what == "limited" else [])
    if what == "child":
        assert env.get("c").status == "cancelled"


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
@pytest.mark.parametrize("what", STATES)
@pytest.mark.parametrize("how", ["before", "after", "freeze"])
def test_nothing_is_left(what: str, mode: Any, how: str) -> None:
    number = 0
    while True:
        number += 1
        env = begun(what)
        env.cancel("r", mode)
        if how == "freeze":
            env.faults.freeze("20m", at=number)
        else:
            env.crash_at(number, after=how == "after")
        env.run_until_idle()
        if env.faults.pending:  # it has ended before
            check(env, what, mode)
            return
        env.advance(minutes=25)
        check(env, what, mode)
