"""A worker that says nothing is given up, its attempt is made again, and what it says later changes nothing."""

from typing import cast

import pytest

from durable import App, Branch, Call, Context, NonRetryableError, RunFailed, Signal, StepFailed, StepTimeout
from durable.engine.reporting import report
from durable.model.task import StepTask, TaskOutcome, task_from
from durable.testing import TestEnvironment, kill_process
from tests.scenarios.conftest import World

app = App("lost-workers")
GO = Signal("go", str)
KILLS: list[int] = []


@app.remote_step(timeout="5m", heartbeat="30s", retries=2)
def watched(code: str) -> str:
    if KILLS and KILLS.pop():
        kill_process()
    return code


@app.remote_step(timeout="5m", retries=1)
def silent(code: str) -> str:
    if KILLS and KILLS.pop():
        kill_process()
    return code


@app.workflow
async def calls_watched(ctx: Context, code: str) -> str:
    return await ctx.call(watched, code)


@app.workflow
async def calls_silent(ctx: Context, code: str) -> str:
    return await ctx.call(silent, code)


@app.workflow
async def wants_a_pickup(ctx: Context, code: str) -> str:
    return await ctx.call(Call(pickup_timeout="10m"), silent, code)


@app.workflow
async def wants_it_soon(ctx: Context, code: str) -> str:
    try:
        return await ctx.call(Call(total="12m", retries=9), silent, code)
    except StepTimeout as error:
        failed = cast("StepFailed", error)
        return f"{failed.kind} {failed.attempts}"


@app.workflow
async def races(ctx: Context, code: str) -> str:
    async def by_call(ctx: Context) -> str:
        return await ctx.call(silent, code)

    async def by_signal(ctx: Context) -> str:
        return await ctx.wait_for_signal(GO)

    winner = await ctx.race("first", Branch("call", by_call), Branch("signal", by_signal))
    await ctx.sleep("1h")
    return winner.value


@app.workflow
async def waits_after(ctx: Context, code: str) -> str:
    printed = await ctx.call(silent, code)
    return f"{printed} {await ctx.wait_for_signal(GO)}"


def fail() -> None:
    raise NonRetryableError("on purpose")


@app.workflow
async def leaves_one_behind(ctx: Context, code: str) -> str:
    async def by_call(ctx: Context) -> str:
        return await ctx.call(silent, code)

    async def by_step(ctx: Context) -> None:
        await ctx.wait_for_signal(GO)
        if MOOD["bad"]:
            await ctx.step(fail)

    printed, _ = await ctx.join("both", Branch("call", by_call), Branch("step", by_step))
    return printed


@app.workflow
async def fails_beside_one(ctx: Context, code: str) -> str:
    async def by_call(ctx: Context) -> str:
        return await ctx.call(silent, code)

    async def by_signal(ctx: Context) -> None:
        await ctx.wait_for_signal(GO)
        if MOOD["bad"]:
            raise NonRetryableError("on purpose")

    import asyncio  # noqa: PLC0415 - what asyncio does is the point here

    printed, _ = await asyncio.gather(by_call(ctx), by_signal(ctx))
    return printed


MOOD = {"bad": False}


@pytest.fixture(autouse=True)
def workers_are_well() -> None:
    KILLS.clear()


def take_task(env: TestEnvironment) -> StepTask:
    """Lets the orchestrator work until it has sent a task, and takes that from the workers."""
    steps = env.world.services.steps
    while not steps.pending:
        assert env.world.deliver()
    (received,) = steps.receive(1)
    steps.acknowledge(received.receipt)
    return task_from(received.body)


def tell(env: TestEnvironment, task: StepTask, value: str) -> None:
    """Reports a result as a worker would."""
    began = env.now.timestamp()
    report(env.world.services.ports, task.attempt_ref, TaskOutcome(value=value, started_at=began, worker="by hand"))


def keys(env: TestEnvironment, run_id: str) -> list[str]:
    return [entry.key for entry in env.history(run_id)]


def test_a_worker_that_was_killed_is_noticed_by_its_silence(world: World) -> None:
    KILLS[:] = [1]
    with world(app) as env:
        began = env.now
        assert env.start(calls_watched, "c", id="r-1").result() == "c"
        assert (env.now - began).total_seconds() == pytest.approx(35, abs=3)
        assert keys(env, "r-1") == ["watched?1", "watched@1", "watched?2", "watched"]
        failed = env.history("r-1")[1].error
        assert failed is not None
        assert failed.matches(StepTimeout)
        assert "no heartbeat within 30 s" in failed.message


def test_without_heartbeats_the_queue_hands_the_task_to_another_worker(world: World) -> None:
    KILLS[:] = [1]
    with world(app) as env:
        assert env.start(calls_silent, "c", id="r-1").result() == "c"
        assert keys(env, "r-1") == ["silent?1", "silent"]


def test_every_worker_dies(world: World) -> None:
    KILLS[:] = [1] * 50
    with world(app) as env:
        handle = env.start(calls_silent, "c", id="r-1")
        with pytest.raises(RunFailed, match="no result within 300 s"):
            handle.result()
        assert keys(env, "r-1") == ["silent?1", "silent@1", "silent?2", "silent"]
        assert env.history("r-1")[-1].failure == "timeout"


def test_a_task_that_nobody_begins_with_is_sent_again(world: World) -> None:
    with world(app) as env:
        handle = env.start(wants_a_pickup, "c", id="r-1")
        began = env.now
        take_task(env)
        assert handle.result() == "c"
        assert (env.now - began).total_seconds() == pytest.approx(605, abs=3)
        assert "has begun with it within 600 s" in str(env.history("r-1")[1].error)


def test_a_worker_that_beats_is_waited_for(world: World) -> None:
    with world(app) as env:
        handle = env.start(calls_watched, "c", id="r-1")
        task = take_task(env)
        store = env.world.services.store
        store.start_task("r-1", task.id, worker="w", now=env.now.timestamp(), expires_at=2e9)
        for _ in range(10):
            env.advance("20s")
            store.beat_task("r-1", task.id, now=env.now.timestamp(), progress='{"page": 7}')
        tell(env, task, '"late but alive"')
        assert handle.result() == "late but alive"
        assert keys(env, "r-1") == ["watched?1", "watched"]


def test_a_call_as_a_whole_has_its_time(world: World) -> None:
    KILLS[:] = [1] * 50
    with world(app) as env:
        began = env.now
        assert env.start(wants_it_soon, "c", id="r-1").result() == "timeout 3"
        assert (env.now - began).total_seconds() == pytest.approx(720, abs=3)


def test_a_late_result_changes_nothing_and_is_counted(world: World) -> None:
    with world(app) as env:
        handle = env.start(waits_after, "c", id="r-1")
        first = take_task(env)
        env.world.services.store.start_task("r-1", first.id, worker="slow", now=env.now.timestamp(), expires_at=2e9)
        env.advance("6m")
        assert env.history("r-1")[-1].value == '"c"'
        row = env.world.services.store.get_task("r-1", first.id)
        assert row is not None
        assert row.closed is not None
        assert row.closed.startswith("no result within 300 s")
        tell(env, first, '"too late"')
        env.run_until_idle()
        assert env.get("r-1").late_results == 1
        handle.send(GO, "now")
        assert handle.result() == "c now"
        assert (env.get("r-1").late_results, env.get("r-1").undelivered) == (1, 0)


def test_a_result_that_comes_twice_counts_once(world: World) -> None:
    with world(app) as env:
        handle = env.start(waits_after, "c", id="r-1")
        task = take_task(env)
        tell(env, task, '"first"')
        env.run_until_idle()
        tell(env, task, '"second"')
        env.run_until_idle()
        handle.send(GO, "now")
        assert handle.result() == "first now"
        assert env.get("r-1").late_results == 0


def test_a_task_that_is_delivered_twice_has_one_result(world: World) -> None:
    with world(app) as env:
        handle = env.start(calls_silent, "c", id="r-1")
        assert env.world.deliver()
        env.faults.duplicate_next()
        assert handle.result() == "c"
        assert keys(env, "r-1") == ["silent?1", "silent"]


def test_a_result_of_another_type_ends_the_call(world: World) -> None:
    with world(app) as env:
        handle = env.start(calls_silent, "c", id="r-1")
        tell(env, take_task(env), '["not", "a", "text"]')
        with pytest.raises(RunFailed, match='the result of remote step "silent" that by hand has sent'):
            handle.result()


def test_the_loser_of_a_race_is_closed(world: World) -> None:
    with world(app) as env:
        handle = env.start(races, "c", id="r-1")
        task = take_task(env)
        handle.send(GO, "signal")
        env.run_until_idle()
        row = env.world.services.store.get_task("r-1", task.id)
        assert row is not None
        assert row.closed is not None
        assert handle.result() == "signal"


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
def test_a_cancelled_run_closes_its_attempts(world: World, mode: str) -> None:
    with world(app) as env:
        handle = env.start(calls_silent, "c", id="r-1")
        task = take_task(env)
        handle.cancel(mode)  # type: ignore[arg-type]
        env.run_until_idle()
        assert env.get("r-1").status == "cancelled"
        row = env.world.services.store.get_task("r-1", task.id)
        assert row is not None
        assert row.closed is not None


@pytest.mark.parametrize("workflow", [leaves_one_behind, fails_beside_one])
def test_a_retry_dispatches_what_the_failed_run_had_closed(world: World, workflow: object) -> None:
    MOOD["bad"] = True
    with world(app) as env:
        handle = env.start(workflow, "c", id="r-1")  # type: ignore[arg-type]
        first = take_task(env)
        handle.send(GO, "now")
        env.run_until_idle()
        if workflow is leaves_one_behind:
            tell(env, first, '"from the first"')
        with pytest.raises(RunFailed):
            handle.result()
        MOOD["bad"] = False
        env.retry("r-1")
        if workflow is fails_beside_one:
            handle.send(GO, "now")
        assert handle.result() == ("from the first" if workflow is leaves_one_behind else "c")
        assert not [entry for entry in env.history("r-1") if entry.mark.startswith("@")]


def test_operators_see_how_far_a_call_has_come(world: World) -> None:
    with world(app) as env:
        handle = env.start(calls_watched, "c", id="r-1")
        task = take_task(env)
        (call,) = env.open_calls("r-1")
        assert (call.location, call.queue, call.attempt, call.state) == ("watched", "default", 1, "queued")
        store, now = env.world.services.store, env.now.timestamp()
        store.start_task("r-1", task.id, worker="w-7", now=now, expires_at=2e9)
        store.beat_task("r-1", task.id, now=now, progress='{"page": 7}')
        (call,) = env.open_calls("r-1")
        assert (call.state, call.worker, call.progress) == ("running", "w-7", '{"page": 7}')
        tell(env, task, '"c"')
        assert handle.result() == "c"
        assert list(env.open_calls("r-1")) == []
