"""Troubles with timers that users of such systems have had, tried on this one."""

from datetime import datetime, timedelta
from functools import partial

import pytest

from durable import App, Backoff, Branch, Context, RunFailed, Signal, Step
from durable.adapters.memory import MemoryTimers
from durable.testing import TestEnvironment

GO = Signal("go", str)
app = App("timers")


def timers_of(env: TestEnvironment) -> MemoryTimers:
    timers = env.world.services.timers
    assert isinstance(timers, MemoryTimers)
    return timers


@app.workflow
async def sleeper(ctx: Context, seconds: float) -> str:
    await ctx.sleep(seconds)
    return "awake"


@pytest.mark.parametrize("seconds", [5, 30, 90, 16 * 60])
def test_TMR_01_a_sleep_is_never_early_and_at_most_two_seconds_late(seconds: float) -> None:
    env = TestEnvironment(app)
    for _ in range(20):
        before = env.now
        env.start(sleeper, seconds).result()
        assert 0 <= (env.now - before).total_seconds() - seconds <= 2


@pytest.mark.parametrize("days", [8, 40, 366, 5 * 365])
def test_TMR_02_a_long_timer_is_recorded_scheduled_and_fires(days: int) -> None:
    env = TestEnvironment(app)
    before = env.now
    handle = env.start(sleeper, days * 86_400.0, id="r")
    env.run_until_idle()
    assert [schedule.run_id for schedule in timers_of(env).schedules] == ["r"]
    due_at = env.get("r").due_at
    assert due_at is not None
    assert abs(due_at - (before + timedelta(days=days)).timestamp()) < 1
    assert handle.result() == "awake"
    assert env.repairs == 0


def test_TMR_02_a_timer_beyond_the_limit_is_refused_at_the_call_with_the_limit() -> None:
    with pytest.raises(RunFailed, match="the limit is ten years"):
        TestEnvironment(app).start(sleeper, 11 * 366 * 86_400.0).result()


async def hears(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


async def naps(ctx: Context, hours: float) -> str:
    await ctx.sleep(hours * 3600)
    return "silence"


@app.workflow
async def message_or_week(ctx: Context) -> str:
    return (await ctx.race("first", Branch("hears", hears), Branch("naps", naps, 7 * 24))).value


def test_TMR_03_a_run_ends_at_once_whatever_timer_it_leaves_behind() -> None:
    env = TestEnvironment(app)
    handle = env.start(message_or_week, id="r")
    env.advance(seconds=2)
    handle.send(GO, "ok")
    env.run_until_idle()
    ended = env.get("r")
    assert (ended.status, ended.due_at, ended.waiting_for) == ("completed", None, ())
    assert handle.result() == "ok"
    calls = len(env.calls)
    env.advance(days=8)
    assert timers_of(env).schedules == []
    assert len(env.calls) - calls <= 2, "a timer that nobody needs any more costs a request or two, once"
    assert env.get("r") == ended


@app.workflow
async def until_due(ctx: Context, due: datetime) -> list[str]:
    await ctx.sleep(0)
    await ctx.sleep(-3)
    await ctx.sleep((due - ctx.now()).total_seconds(), name="rest")
    await ctx.sleep(30)
    return ["done"]


def test_TMR_04_a_sleep_of_any_sign_is_one_entry_live_and_on_replay() -> None:
    env = TestEnvironment(app)
    handle = env.start(until_due, env.now + timedelta(seconds=0.5), id="r")
    env.run_until_idle()
    env.restart()
    assert handle.result() == ["done"]
    assert [entry.location for entry in env.history("r")] == ["sleep", "sleep#2", "rest", "sleep#3"]


@app.workflow
async def until(ctx: Context, moment: datetime) -> str:
    await ctx.sleep_until(moment)
    return "now"


def test_TMR_05_a_moment_in_the_past_is_no_sleep() -> None:
    env = TestEnvironment(app)
    assert env.start(until, env.now - timedelta(seconds=1)).result() == "now"


@pytest.mark.parametrize("seconds", [1.2, 20 * 60])
def test_TMR_05_a_deadline_that_passes_while_its_timer_is_set_wakes_the_run(seconds: float) -> None:
    clean = TestEnvironment(app)
    clean.start(sleeper, seconds).result()
    arming = clean.calls.index("timers.arm") + 1
    env = TestEnvironment(app)
    env.faults.freeze(seconds + 3, at=arming)
    assert env.start(sleeper, seconds).result() == "awake"


@app.workflow
async def ticking(ctx: Context, generation: int) -> int:
    winner = await ctx.race("first", Branch("hears", hears), Branch("naps", naps, 5))
    assert winner.value == f"tick {generation}"
    if generation == 4:
        return generation
    return await ctx.continue_as_new(ticking, generation + 1)


def test_TMR_06_timers_of_older_lives_fire_into_nothing() -> None:
    env = TestEnvironment(app)
    handle = env.start(ticking, 1, id="r")
    for generation in range(1, 5):
        env.run_until_idle()
        handle.send(GO, f"tick {generation}")
    assert handle.result() == 4
    histories = {run.id: env.history(run.id) for run in env.world.services.memory.runs}
    env.advance(hours=6)
    assert {run.id: env.history(run.id) for run in env.world.services.memory.runs} == histories
    assert len(histories) == 4


def test_TMR_07_a_run_in_an_idle_system_wakes_unaided() -> None:
    env = TestEnvironment(app)
    before = env.now
    handle = env.start(sleeper, 3 * 3600.0)
    env.run_until_idle()
    env.restart()  # no function is warm
    assert handle.result() == "awake"
    assert env.now - before <= timedelta(hours=3, seconds=2)
    assert env.repairs == 0


@app.workflow
async def listener(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


def test_TMR_08_a_wait_may_be_all_that_a_workflow_does() -> None:
    env = TestEnvironment(app)
    assert env.start(sleeper, 35.0).result() == "awake"
    handle = env.start(listener, id="r")
    env.run_until_idle()
    assert env.get("r").status == "suspended"
    handle.send(GO, "x")
    assert handle.result() == "x"


@app.workflow
async def cleaning(ctx: Context) -> None:
    try:
        await ctx.sleep(600, name="work")
    finally:
        await ctx.sleep(30, name="clean-up")


def test_TMR_09_after_a_cancellation_only_the_clean_up_still_ticks() -> None:
    env = TestEnvironment(app)
    handle = env.start(cleaning, id="r")
    env.advance(seconds=10)
    handle.cancel()
    env.run_until_idle()
    run = env.get("r")
    assert run.due_at is not None
    assert run.due_at - env.now.timestamp() <= 31
    assert "600" not in str(run.reason)
    assert [(entry.location, entry.mark) for entry in env.history("r")] == [("cancel", "^")]


def work(n: int) -> int:
    return n


@app.workflow
async def many_timed_steps(ctx: Context) -> int:
    for n in range(200):
        await ctx.step(Step(timeout=60), work, n)
    return 200


@app.workflow
async def patient(ctx: Context) -> int:
    for _ in range(50):
        await ctx.wait_for_signal(GO, timeout="5h")
    return 50


def test_TMR_10_steps_with_timeouts_set_no_timers_and_waits_share_one() -> None:
    env = TestEnvironment(app)
    assert env.start(many_timed_steps).result() == 200
    assert "timers.arm" not in env.calls
    handle = env.start(patient)
    for _ in range(50):
        env.advance(minutes=1)
        handle.send(GO, "on")
        env.run_until_idle()
        assert len(timers_of(env).schedules) <= 1
    assert handle.result() == 50
    env.advance(hours=6)
    assert timers_of(env).schedules == []


def answer() -> str:
    return "ok"


@app.workflow
async def insistent(ctx: Context) -> str:
    return await ctx.step(Step(retries=2, backoff=Backoff(2)), answer)


def test_TMR_11_a_run_that_stalls_until_its_retry_is_due_goes_on() -> None:
    def play(stall_at: int | None) -> TestEnvironment:
        env = TestEnvironment(app)
        env.mock(answer).raises(ConnectionError).returns("ok")
        if stall_at is not None:
            env.faults.freeze(3.5, at=stall_at)
        assert env.start(insistent, id="r").result() == "ok"
        assert env.repairs == 0
        return env

    calls = play(None).calls
    for number in range(1, len(calls) + 1):
        env = play(number)
        assert [entry.mark for entry in env.history("r")] == ["@1", ""]


@app.workflow
async def two_waits(ctx: Context) -> list[str]:
    return [await ctx.wait_for_signal(GO), await ctx.wait_for_signal(GO)]


def test_TMR_11_a_message_in_the_moment_of_suspending_is_seen() -> None:
    clean = TestEnvironment(app)
    clean.start(two_waits, id="r")
    clean.run_until_idle()
    for number in range(1, len(clean.calls) + 1):
        env = TestEnvironment(app)
        handle = env.start(two_waits, id="r")
        # The message comes in just before this call of the turn that would suspend.
        env.faults.meanwhile(partial(handle.send, GO, "early"), at=number)
        env.run_until_idle()
        handle.send(GO, "late")
        assert handle.result() == ["early", "late"]
        assert env.repairs == 0
