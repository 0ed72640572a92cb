"""The first success wins on every replay; losers consume nothing any more, and what they had done stays."""

import asyncio
from typing import Any

import pytest

from durable import App, Branch, Context, NonRetryableError, RaceError, RunBlocked, RunFailed, Signal, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World
from tests.scenarios.replaying import played_cold

GO = Signal("go", str)
SURE = Step(retries=20)
app = App("races")


def work(n: int) -> int:
    return n * n


def refuse() -> str:
    raise NonRetryableError("no")


async def listens(ctx: Context) -> str:
    return (await ctx.mailbox.next(GO)).body


async def naps(ctx: Context, minutes: float) -> str:
    await ctx.sleep(minutes * 60)
    return f"slept {minutes:g}"


async def no_time(ctx: Context) -> str:
    await ctx.sleep(0)
    return "nothing there"


async def fails_after(ctx: Context, minutes: float) -> str:
    await ctx.sleep(minutes * 60)
    return await ctx.step(SURE, refuse)


async def two_messages(ctx: Context) -> str:
    first = await ctx.mailbox.next(GO)
    return first.body + (await ctx.mailbox.next(GO)).body


async def stubborn(ctx: Context) -> str:
    try:
        await ctx.sleep("1 day")
    except asyncio.CancelledError:
        await ctx.sleep("2 days")
    return "late"


@app.workflow
async def message_or_time(ctx: Context) -> list[str]:
    winner = await ctx.race("first", Branch("message", listens), Branch("time", naps, 10))
    await ctx.sleep("1h")
    rest = await ctx.mailbox.next(GO, timeout=0, default=None)
    return [winner.key, winner.value, "-" if rest is None else rest.body]


@app.workflow
async def drained(ctx: Context) -> list[str]:
    await ctx.sleep("1h")
    seen: list[str] = []
    while True:
        winner = await ctx.race(f"drain-{len(seen)}", Branch("message", listens), Branch("empty", no_time))
        if winner.key == "empty":
            return seen
        seen.append(winner.value)


@app.workflow
async def stays_consumed(ctx: Context) -> list[str]:
    winner = await ctx.race("first", Branch("pair", two_messages), Branch("time", naps, 10))
    return [winner.key, (await ctx.mailbox.next(GO)).body]


@app.workflow
async def nobody_wins(ctx: Context) -> list[str]:
    try:
        await ctx.race("first", Branch("a", fails_after, 2), Branch("b", fails_after, 1))
    except RaceError as error:
        await ctx.sleep("1h")
        return list(error.failures)
    return []


@app.workflow
async def failure_decides(ctx: Context) -> str:
    return (await ctx.race("first", Branch("a", fails_after, 1), Branch("b", naps, 2), settle="first")).value


@app.workflow
async def success_decides(ctx: Context) -> str:
    return (await ctx.race("first", Branch("a", fails_after, 1), Branch("b", naps, 2))).value


@app.workflow
async def not_delayed(ctx: Context) -> list[Any]:
    winner = await ctx.race("first", Branch("stubborn", stubborn), Branch("b", naps, 2))
    return [winner.key, await ctx.step(SURE, work, 3)]


@app.workflow
async def slow_loser(ctx: Context) -> list[Any]:
    async def steps(ctx: Context) -> str:
        await ctx.step(Step("slow", timeout=60), work, 2)
        return "steps"

    winner = await ctx.race("first", Branch("steps", steps), Branch("time", no_time))
    return [winner.key, await ctx.step(SURE, work, 3)]


def deployment(*keys: str) -> App[None]:
    changing = App("changing")

    @changing.workflow
    async def job(ctx: Context) -> str:
        winner = await ctx.race("first", *(Branch(key, naps, minutes) for minutes, key in enumerate(keys, start=5)))
        return winner.key

    return changing


def test_a_message_in_time_wins(world: World) -> None:
    env = world(app)
    handle = env.start(message_or_time, id="r")
    env.advance(minutes=5)
    handle.send(GO, "hello")
    assert handle.result() == ["message", "hello", "-"]


def test_a_message_after_the_deadline_loses_and_is_not_consumed(world: World) -> None:
    env = world(app)
    handle = env.start(message_or_time, id="r")
    env.advance(minutes=11)
    handle.send(GO, "late")
    assert handle.result() == ["time", "slept 10", "late"]


def test_late_turns_decide_by_the_time_of_the_events(world: World) -> None:
    env = world(app)
    handle = env.start(message_or_time, id="r")
    env.run_until_idle()
    handle.send(GO, "in time")
    env.outage("1h")
    assert handle.result()[0] == "message"


def test_draining_never_waits_and_consumes_each_once(world: World) -> None:
    env = world(app)
    handle = env.start(drained, id="r")
    for text in "abc":
        handle.send(GO, text)
    assert handle.result() == ["a", "b", "c"]


def test_what_a_loser_had_consumed_stays_consumed(world: World) -> None:
    env = world(app)
    handle = env.start(stays_consumed, id="r")
    env.advance(minutes=5)
    handle.send(GO, "first")
    env.advance(minutes=6)
    handle.send(GO, "second")
    assert handle.result() == ["time", "second"]


def test_when_all_fail_every_failure_is_told(world: World) -> None:
    assert world(app).start(nobody_wins, id="r").result() == ["a", "b"]


def test_a_failure_decides_only_where_it_is_asked_to(world: World) -> None:
    with pytest.raises(RunFailed, match="no"):
        world(app).start(failure_decides, id="r").result()
    assert world(app).start(success_decides, id="r").result() == "slept 2"


def test_a_loser_that_ignores_its_end_delays_nobody(world: World) -> None:
    env = world(app)
    start = env.now
    assert env.start(not_delayed, id="r").result() == ["b", 9]
    assert (env.now - start).total_seconds() < 200


def test_the_step_of_a_loser_is_dropped(world: World) -> None:
    assert world(app).start(slow_loser, id="r").result()[1] == 9


@pytest.mark.parametrize(
    "keys", [("a", "b", "c"), ("a",), ("a", "c"), ("b", "a")], ids=["added", "removed", "renamed", "reordered"]
)
def test_other_branches_are_a_divergence_before_anything_new_runs(world: World, keys: tuple[str, ...]) -> None:
    env = world(deployment("a", "b"))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    env.deploy(deployment(*keys))
    with pytest.raises(RunBlocked, match="no longer matches"):
        handle.result()
    env.deploy(deployment("a", "b"))
    assert handle.result() == "a"


def messages(env: TestEnvironment, handle: Any) -> None:
    env.advance(minutes=5)
    handle.send(GO, "first", id="m1")
    env.advance(minutes=6)
    handle.send(GO, "second", id="m2")


@pytest.mark.parametrize("workflow", [message_or_time, stays_consumed], ids=lambda one: one.name)
def test_every_prefix_of_its_history_replays(workflow: Any) -> None:
    played_cold(workflow, app, script=messages)


@pytest.mark.parametrize("workflow", [nobody_wins, success_decides, not_delayed], ids=lambda one: one.name)
def test_every_prefix_replays_without_messages(workflow: Any) -> None:
    played_cold(workflow, app)


def early(env: TestEnvironment, handle: Any) -> None:
    handle.send(GO, "first", id="m1")
    handle.send(GO, "second", id="m2")
    env.advance(minutes=1)


@pytest.mark.parametrize("workflow", [message_or_time, drained], ids=lambda one: one.name)
def test_dying_anywhere_changes_nothing(workflow: Any) -> None:
    TestEnvironment(app).run_crash_matrix(workflow, script=early)
