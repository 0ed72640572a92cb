"""A graceful cancellation raises RunCancelled wherever the run waits, once, in its place in the order of record."""

import asyncio
import threading
from typing import Any

import pytest

from durable import (
    App,
    Branch,
    Break,
    Context,
    Continue,
    NonRetryableError,
    RunBlocked,
    RunCancelled,
    RunEnded,
    RunFailed,
    RunNotFound,
    RunWasCancelled,
    Signal,
    Step,
)
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("cancel")
GO = Signal("go", str)
done: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()


wrote = threading.Condition()


def act(what: str) -> str:
    with wrote:
        done.append(what)
        wrote.notify_all()
    return what


def undo(result: str, what: str) -> None:
    done.append(f"undo {what}")


def refuse() -> None:
    raise NonRetryableError("no")


@app.workflow
async def waits(ctx: Context) -> str:
    await ctx.step("begin", act, "begin")
    message = await ctx.mailbox.next(GO)
    return await ctx.step("end", act, message.body)


@app.workflow
async def cleans_up(ctx: Context) -> str:
    await ctx.step("begin", act, "begin")
    try:
        await ctx.sleep("10 days")
    except RunCancelled:
        await ctx.step("free", act, "free")
        await ctx.sleep("90s")
        await ctx.step("tell", act, "tell")
        raise
    return "slept"


@app.workflow
async def returns_all_the_same(ctx: Context) -> str:
    try:
        await ctx.mailbox.next(GO)
    except asyncio.CancelledError:
        return await ctx.step("partly", act, "partly")
    return "whole"


@app.workflow
async def swallows_exceptions(ctx: Context) -> None:
    while True:
        try:
            await ctx.sleep("1h")
        except Exception:  # noqa: BLE001, S112
            continue


@app.workflow
async def fails_while_cleaning_up(ctx: Context) -> None:
    await ctx.step(Step("begin").undo(undo), act, "begin")
    try:
        await ctx.sleep("10 days")
    finally:
        await ctx.step(refuse)


async def branch(ctx: Context, name: str) -> str:
    try:
        await ctx.sleep("1 day")
    except RunCancelled:
        await ctx.step("free", act, f"free {name}")
        raise
    return name


@app.workflow
async def joined(ctx: Context) -> None:
    try:
        await ctx.join("both", Branch("a", branch, "a"), Branch("b", branch, "b"))
    except RunCancelled:
        await ctx.step("after", act, "after")
        raise


@app.workflow
async def nested_joins(ctx: Context) -> None:
    async def inner(ctx: Context) -> None:
        await ctx.join("inner", Branch("c", branch, "c"), Branch("d", branch, "d"))

    await ctx.join("outer", Branch("a", branch, "a"), Branch("in", inner))


@app.workflow
async def raced(ctx: Context) -> None:
    await ctx.race("either", Branch("a", branch, "a"), Branch("b", branch, "b"))


@app.workflow
async def looped(ctx: Context) -> None:
    async def body(ctx: Context, n: int) -> Break[None] | Continue[int]:
        await ctx.step("turn", act, f"turn {n}")
        try:
            await ctx.sleep("1h")
        except RunCancelled:
            await ctx.step("free", act, "free")
            raise
        return Continue(n + 1)

    await ctx.loop("for-ever", body, state=0, history=2)


@app.workflow
async def gathered(ctx: Context) -> None:
    await asyncio.gather(branch_of(ctx, "a"), branch_of(ctx, "b"))


@app.workflow
async def grouped(ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(branch_of(ctx, "a"))
        group.create_task(branch_of(ctx, "b"))


async def branch_of(ctx: Context, name: str) -> None:
    try:
        await ctx.sleep("1 day", name=f"sleep-{name}")
    except RunCancelled:
        await ctx.step(f"free-{name}", act, f"free {name}")
        raise


@app.workflow
async def waits_for_an_event_of_its_own(ctx: Context) -> None:
    ready = asyncio.Event()

    async def set_it() -> None:
        await ctx.sleep("1 day")
        ready.set()

    task = asyncio.create_task(set_it())
    await ready.wait()
    await task


@app.workflow
async def in_a_timeout(ctx: Context) -> None:
    try:
        async with asyncio.timeout(3600):
            await ctx.mailbox.next(GO)
    except asyncio.CancelledError:
        try:
            async with asyncio.timeout(60):
                await ctx.mailbox.next(GO)
        except TimeoutError:
            await ctx.step("late", act, "timed out in clean-up")
        raise


def cancelled(env: TestEnvironment, workflow: Any) -> Any:
    """Starts the run, cancels it while it waits, and lets it end."""
    handle = env.start(workflow, id="r")
    env.run_until_idle()
    handle.cancel()
    with pytest.raises(RunWasCancelled):
        handle.result()
    return env.get("r")


def test_a_waiting_run_is_cancelled_and_nothing_of_it_runs_afterwards(world: World) -> None:
    env = world(app)
    run = cancelled(env, waits)
    assert (run.status, done) == ("cancelled", ["begin"])
    assert env.repairs == 0
    assert [entry.key for entry in env.history("r")] == ["begin", "cancel^"]


def test_can_08_clean_up_may_run_steps_and_sleep(world: World) -> None:
    env = world(app)
    cancelled(env, cleans_up)
    assert done == ["begin", "free", "tell"]


def test_the_next_wake_is_that_of_the_clean_up_not_of_what_was_cancelled(world: World) -> None:
    env = world(app)
    handle = env.start(cleans_up, id="r")
    env.run_until_idle()
    handle.cancel()
    env.run_until_idle()
    run = env.get("r")
    assert run.status == "suspended"
    assert run.due_at is not None
    assert run.due_at - env.now.timestamp() == pytest.approx(90)


def test_code_that_returns_all_the_same_completes(world: World) -> None:
    env = world(app)
    handle = env.start(returns_all_the_same, id="r")
    env.run_until_idle()
    handle.cancel()
    assert handle.result() == "partly"


def test_can_01_except_exception_does_not_swallow_it(world: World) -> None:
    assert cancelled(world(app), swallows_exceptions).status == "cancelled"


def test_an_error_in_the_clean_up_fails_the_run_and_undoes_its_steps(world: World) -> None:
    env = world(app)
    handle = env.start(fails_while_cleaning_up, id="r")
    env.run_until_idle()
    handle.cancel()
    with pytest.raises(RunFailed, match="no"):
        handle.result()
    assert done == ["begin", "undo begin"]


@pytest.mark.parametrize(
    ("workflow", "freed"),
    [
        (joined, ["free a", "free b", "after"]),
        (nested_joins, ["free a", "free c", "free d"]),
        (raced, ["free a", "free b"]),
        (gathered, ["free a", "free b"]),
        (grouped, ["free a", "free b"]),
        (looped, ["turn 0", "free"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_it_reaches_every_branch_and_each_may_clean_up(world: World, workflow: Any, freed: list[str]) -> None:
    env = world(app)
    cancelled(env, workflow)
    with wrote:  # where the run ends with the first of several, the bodies of the others may still be on their way
        wrote.wait_for(lambda: len(done) >= len(freed), timeout=10)
    assert sorted(done) == sorted(freed)
    assert [entry.kind for entry in env.history("r")].count("cancel") == 1


def test_what_waits_for_an_event_of_its_own_is_cancelled_too(world: World) -> None:
    assert cancelled(world(app), waits_for_an_event_of_its_own).status == "cancelled"


def test_timeouts_work_in_the_clean_up(world: World) -> None:
    cancelled(world(app), in_a_timeout)
    assert done == ["timed out in clean-up"]


def test_a_run_that_has_not_begun_is_cancelled_without_running_code(world: World) -> None:
    env = world(app)
    handle = env.start(cleans_up, id="r")
    handle.cancel()
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == []
    assert env.history("r") == []


def test_can_02_cancelling_twice_is_cancelling_once(world: World) -> None:
    env = world(app)
    handle = env.start(cleans_up, id="r")
    env.run_until_idle()
    handle.cancel()
    env.run_until_idle()
    handle.cancel()
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == ["begin", "free", "tell"]


def test_a_message_that_races_the_cancellation_is_not_consumed(world: World) -> None:
    env = world(app)
    handle = env.start(waits, id="r")
    env.run_until_idle()
    handle.send(GO, "now")
    handle.cancel()
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == ["begin"]
    assert env.get("r").undelivered == 1


def test_a_message_before_the_cancellation_is_received(world: World) -> None:
    env = world(app)
    handle = env.start(waits, id="r")
    handle.send(GO, "now")
    env.run_until_idle()
    with pytest.raises(RunEnded):
        handle.cancel()
    assert handle.result() == "now"


def test_it_is_replayed_in_its_place(world: World) -> None:
    env = world(app)
    handle = env.start(cleans_up, id="r")
    env.run_until_idle()
    handle.cancel()
    env.run_until_idle()
    env.restart()
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == ["begin", "free", "tell"]
    assert [entry.key for entry in env.history("r")] == ["begin", "cancel^", "free", "sleep#2", "tell"]


def test_changed_code_that_does_not_wait_there_any_more_is_a_divergence(world: World) -> None:
    changed = App("cancel")

    async def cleans_up_differently(ctx: Context) -> str:
        await ctx.step("begin", act, "begin")
        try:
            await ctx.sleep("10 days", name="long")
        except RunCancelled:
            await ctx.step("free", act, "free")
        return "slept"

    changed.workflow(name="cleans_up")(cleans_up_differently)
    env = world(app)
    handle = env.start(cleans_up, id="r")
    env.run_until_idle()
    handle.cancel()
    env.run_until_idle()
    env.deploy(changed)
    with pytest.raises(RunBlocked, match='cancelled while it waited for "sleep"'):
        handle.result()


@pytest.mark.parametrize("workflow", [cleans_up, joined, grouped, looped], ids=lambda workflow: workflow.name)
def test_dying_anywhere_changes_nothing(world: World, workflow: Any) -> None:
    def cancel(env: TestEnvironment, handle: Any) -> None:
        env.advance(minutes=5)
        handle.cancel()

    env = world(app)
    assert len(env.run_crash_matrix(workflow, script=cancel).calls) > 8


def test_can_06_only_that_run_is_cancelled(world: World) -> None:
    env = world(app)
    handles = [env.start(waits, id=f"r{n}") for n in range(3)]
    env.run_until_idle()
    handles[1].cancel()
    for n in (0, 2):
        handles[n].send(GO, f"{n}")
    assert [handles[n].result() for n in (0, 2)] == ["0", "2"]


@pytest.mark.parametrize("mode", ["graceful", "compensate"])
def test_can_07_an_ended_or_unknown_run_is_refused(world: World, mode: Any) -> None:
    env = world(app)
    handle = env.start(waits, id="r")
    handle.send(GO, "go")
    handle.result()
    with pytest.raises(RunEnded, match="completed"):
        handle.cancel(mode)
    with pytest.raises(RunNotFound):
        env.cancel("nobody", mode)
