"""A run that continues as new leaves nothing behind that others would wait or work for, and takes nothing along that is over."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Branch, Context, Event, RunFailed, Signal, Singleton
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
        assert [message.kind for message in env.ports.store.load("r~4", mailbox_only=True).messages] == ["result"]


# Slots


class Visit(BaseModel):
    place: str
    then: str | None = None


inside: list[str] = []


def enter(place: str) -> None:
    assert place not in inside, "two at once"
    inside.append(place)


@app.workflow(singleton=Singleton("place"))
async def visit(ctx: Context, what: Visit) -> str:
    await ctx.step("enter", enter, what.place)
    said = await ctx.wait_for_signal(GO)
    await ctx.step("leave", inside.remove, what.place)
    if what.then is not None:
        return await ctx.continue_as_new(visit, Visit(place=what.then))
    return f"{what.place} {said}"


@app.workflow
async def walks_in(ctx: Context) -> str:
    return await ctx.continue_as_new(visit, Visit(place="b"))


def test_a_run_that_continues_under_another_key_waits_for_a_slot_there_and_leaves_its_own() -> None:
    inside.clear()
    with TestEnvironment(app) as env:
        env.start(visit, Visit(place="a", then="b"), id="first")
        env.start(visit, Visit(place="b"), id="second")
        env.start(visit, Visit(place="a"), id="third")
        env.run_until_idle()
        assert inside == ["a", "b"]
        env.send("first", GO, "1")
        env.run_until_idle()
        assert inside == ["b", "a"]
        env.send("third", GO, "3")
        assert env.result("third") == "a 3"
        env.send("second", GO, "2")
        assert env.result("second") == "b 2"
        env.send("first", GO, "4")
        assert env.result("first") == "b 4"
        env.advance(minutes=10)
        assert env.ports.store.read_lane("singleton:visit:a", tickets=1) is None
        assert env.ports.store.read_lane("singleton:visit:b", tickets=1) is None


def test_a_run_that_continues_as_a_singleton_waits_for_a_slot() -> None:
    inside.clear()
    with TestEnvironment(app) as env:
        env.start(visit, Visit(place="b"), id="second")
        env.run_until_idle()
        env.start(walks_in, id="first")
        env.run_until_idle()
        assert inside == ["b"]
        for run_id in ("second", "first"):
            env.send(run_id, GO, run_id)
            assert env.result(run_id) == f"b {run_id}"


def test_a_run_that_cannot_find_its_key_does_not_continue() -> None:
    other = App("keys")

    @other.workflow(singleton=Singleton("place"))
    async def keyed(ctx: Context, what: dict[str, str]) -> None:
        await ctx.continue_as_new(keyed, {})

    with TestEnvironment(other) as env:
        handle = env.start(keyed, {"place": "a"})
        with pytest.raises(RunFailed, match="InvalidInput"):
            handle.result()
