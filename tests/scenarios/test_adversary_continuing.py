"""A run that continues as new leaves nothing behind that others would wait or work for, and takes nothing along that is over."""

import asyncio
from typing import Any

import pytest

from durable import App, Branch, Context, Event, Signal
from durable.model.call import task_id_of
from durable.model.envelope import Deliver
from durable.testing import TestEnvironment, kill_process

app = App("continuing")
app.queue("one", concurrency=1)
GO = Signal("go", str)
PAID = Event("paid", int)


@app.remote_step(queue="one", retries=0, timeout="1h")
def remote() -> str:
    return kill_process()


@app.workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


async def child_branch(ctx: Context) -> str:
    return await ctx.child(waiting, id="c")


async def call_branch(ctx: Context) -> str:
    return await ctx.call(remote)


async def event_branch(ctx: Context) -> str:
    return str(await ctx.wait_for_event(PAID))


async def soon(ctx: Context) -> str:
    await ctx.sleep("1m")
    return "soon"


BRANCHES = {"child": child_branch, "call": call_branch, "event": event_branch}


@app.workflow
async def last(ctx: Context, what: str) -> str:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def after_a_race(ctx: Context, what: str) -> str:
    await ctx.race("first", Branch("slow", BRANCHES[what]), Branch("soon", soon))
    return await ctx.continue_as_new(last, what)


@app.workflow
async def beside_a_task(ctx: Context, what: str) -> str:
    task = asyncio.create_task(BRANCHES[what](ctx))
    await ctx.sleep("1m")
    del task
    return await ctx.continue_as_new(last, what)


def subscribers(env: TestEnvironment) -> int:
    return len(env.ports.store.subscriptions("paid", cursor=None, limit=10).subscriptions)


def holders(env: TestEnvironment) -> set[str]:
    state = env.ports.store.read_lane("queue:one", tickets=10)
    return set() if state is None else {*state.lane.holders, *(place.holder for place in state.places)}


@pytest.mark.parametrize("workflow", [after_a_race, beside_a_task], ids=lambda it: it.name)
@pytest.mark.parametrize("what", ["child", "call", "event"])
def test_what_was_open_is_closed(workflow: Any, what: str) -> None:
    with TestEnvironment(app) as env:
        env.start(workflow, what, id="r")
        env.advance(seconds=30)
        env.advance(minutes=2)
        assert env.get("r").id == "r~2"
        assert (subscribers(env), holders(env)) == (0, set())
        if what == "child" and workflow is after_a_race:
            assert env.get("c").status == "cancelled"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("workflow", [after_a_race, beside_a_task], ids=lambda it: it.name)
@pytest.mark.parametrize("what", ["child", "call", "event"])
def test_it_is_closed_wherever_the_run_dies(workflow: Any, what: str, after: bool) -> None:
    for number in range(1, 40):
        env = TestEnvironment(app)
        env.start(workflow, what, id="r")
        env.advance(seconds=30)
        env.crash_at(number, after=after)
        env.advance(minutes=10)
        if env.faults.pending:
            assert number > 5
            return
        assert env.get("r").id == "r~2"
        assert (subscribers(env), holders(env)) == (0, set())
        if what == "child" and workflow is after_a_race:
            assert env.get("c").status == "cancelled"
        env.send("r", GO, "end")
        assert env.result("r") == "end"


@app.workflow
async def rounds(ctx: Context, n: int) -> str:
    async def call(ctx: Context) -> str:
        return await ctx.call(remote)

    await ctx.race("first", Branch("call", call), Branch("soon", soon))
    if n:
        return await ctx.continue_as_new(rounds, n - 1)
    return await ctx.wait_for_signal(GO)


def test_late_reports_are_not_handed_on_from_run_to_run() -> None:
    with TestEnvironment(app) as env:
        env.start(rounds, 3, id="r")
        for _ in range(4):
            env.run_until_idle()
            run_id = env.get("r").id
            opened = next(entry for entry in env.history(run_id) if entry.mark == "?1")
            env.advance(minutes=2)
            late = Deliver(run_id=run_id, id=task_id_of(opened), name=opened.location, kind="result", body="{}")
            env.world.services.runs.send(late)
        env.run_until_idle()
        assert env.get("r").id == "r~4"
        assert [message.name for message in env.ports.store.load("r~4", mailbox_only=True).messages] == [opened.location]
