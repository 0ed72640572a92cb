"""Whatever call an invocation dies at: an event reaches who waits for it once, starts its runs once, and leaves no list behind."""

import asyncio
from typing import Any

import pytest

from durable import App, Batch, Context, Event, Signal
from durable.client import RunHandle
from durable.testing import TestEnvironment

DONE = Event("done", dict[str, int])
PLACED = Event("placed", int)
GO = Signal("go", int)
app = App("crashes-of-events")


@app.workflow
async def waits(ctx: Context) -> list[int]:
    """A kept event, one that matches, one that is too late, and two at once."""
    kept = await ctx.wait_for_event(DONE, match={"n": 1}, timeout="1h")
    first = await ctx.wait_for_event(DONE, match={"n": 2})
    late = await ctx.wait_for_event(DONE, match={"n": 3}, timeout="10m", default=None)
    one, two = await asyncio.gather(ctx.wait_for_event(DONE, match={"n": 4}), ctx.wait_for_event(DONE))
    return [kept["v"], first["v"], 0 if late is None else late["v"], one["v"], two["v"]]


@app.workflow
async def gives_up(ctx: Context) -> int:
    async def event(ctx: Context) -> int:
        return (await ctx.wait_for_event(DONE))["v"]

    async def signal(ctx: Context) -> int:
        return await ctx.wait_for_signal(GO)

    winner = await ctx.race("first", {"event": event, "signal": signal})
    await ctx.sleep("1h")
    return winner.value


@app.workflow
async def idle(ctx: Context) -> int:
    await ctx.sleep("3h")
    return 1


@app.workflow
async def each(ctx: Context, n: int) -> int:
    return n


@app.workflow
async def together(ctx: Context, numbers: list[int]) -> int:
    return sum(numbers)


app.on_event(PLACED, each)
app.on_event(PLACED, together, batch=Batch(2, window="30m"))


def happens(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.publish_event(DONE, {"n": 1, "v": 10}, id="e-1", buffer="3h")
    env.advance(minutes=20)
    env.publish_event(DONE, {"n": 9, "v": 1}, id="e-9")
    env.publish_event(DONE, {"n": 2, "v": 20}, id="e-2")
    env.advance(minutes=40)
    env.publish_event(DONE, {"n": 4, "v": 40}, id="e-4")
    env.advance(minutes=20)


def is_given_up(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.advance(minutes=20)
    handle.send(GO, 5, id="go")
    env.advance(minutes=20)
    env.publish_event(DONE, {"n": 4, "v": 40}, id="e-4")


def places(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    for n in (1, 2, 3):
        env.publish_event(PLACED, n, id=f"p-{n}")
        env.advance(minutes=8)  # longer than any trouble lasts: else another event may come first
    env.advance(minutes=40)


def clean(env: TestEnvironment) -> None:
    """What an invocation that had lost the run has listed late is taken off by the next such event."""
    for n in (1, 2, 3, 4):
        env.publish_event(DONE, {"n": n, "v": 0})
    env.advance(minutes=10)
    assert not env.ports.store.subscriptions("done").subscriptions


@pytest.mark.parametrize(
    ("workflow", "script", "output"), [(waits, happens, [10, 20, 0, 40, 40]), (gives_up, is_given_up, 5)]
)
def test_waits_end_as_without_a_crash_and_are_off_the_list(workflow: Any, script: Any, output: Any) -> None:
    def then(env: TestEnvironment, handle: RunHandle[Any]) -> None:
        script(env, handle)
        assert handle.result() == output
        env.advance(minutes=10)
        clean(env)

    assert len(TestEnvironment(app).run_crash_matrix(workflow, script=then).calls) >= 15


def test_each_event_is_in_one_run_and_in_one_batch() -> None:
    def then(env: TestEnvironment, handle: RunHandle[Any]) -> None:
        places(env, handle)
        assert handle.result() == 1
        runs = {row.id: env.result(row.id, timeout=0) for row in env.list().runs}
        assert sorted(runs.values()) == sorted([1, 1, 2, 3, *_batches(runs)])

    assert len(TestEnvironment(app).run_crash_matrix(idle, script=then).calls) >= 30


def _batches(runs: dict[str, Any]) -> list[int]:
    sums = [value for run_id, value in runs.items() if run_id.endswith(":together")]
    assert sum(sums) == 6
    return sums


@app.workflow
async def waits_later(ctx: Context) -> int:
    await ctx.sleep("1m")
    return (await ctx.wait_for_event(DONE))["v"]


@pytest.mark.parametrize("seconds", [50, 61])
def test_an_event_and_a_wait_that_cross_find_each_other_whoever_stands_still(seconds: int) -> None:
    """The event is handled before or after the run wakes up; whoever is first stands still while the other goes on."""
    for call in range(1, 12):
        env = TestEnvironment(app)
        handle = env.start(waits_later)
        env.run_until_idle()
        if seconds > 60:  # the run begins to wait, and stands still somewhere on the way
            env.advance(seconds=59)
            env.faults.freeze("30s", at=call)
            env.publish_event(DONE, {"n": 1, "v": 7}, id="e", buffer="1h")
            env.faults.delay_next("10s")
        else:
            env.advance(seconds=seconds)
            env.faults.freeze("30s", at=call)
            env.publish_event(DONE, {"n": 1, "v": 7}, id="e", buffer="1h")
        env.advance(minutes=5)
        assert handle.result(timeout=600) == 7, f"standing still before call {call}"
