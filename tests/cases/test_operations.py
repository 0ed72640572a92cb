"""Troubles that operators of such systems have had, tried on this one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from durable import (
    App,
    Context,
    NonRetryableError,
    RunFailed,
    RunNotFound,
    Signal,
    Singleton,
    StateKey,
    Step,
)
from durable.adapters.memory import MemoryTimers
from durable.engine.maintenance import Maintenance
from durable.engine.orchestrator import Delivery
from durable.model.envelope import Deliver, Start, TimerFired, Wake, to_body
from durable.testing import TestEnvironment
from durable.testing.containers import Container

GO = Signal("go", int)
PROGRESS = StateKey("progress", int)
app = App("operations")


def work(n: object = 0) -> Any:
    return n


def rows() -> list[int]:
    return [1, 2, 3]


@app.workflow(retention={"completed": "30 days"})
async def kept(ctx: Context) -> int:
    for n in range(3):
        await ctx.offload(f"rows-{n}", rows)
    ctx.set_state(PROGRESS, 1)
    return await ctx.wait_for_signal(GO)


@app.workflow(retention={"completed": "30 days"})
async def fails(ctx: Context) -> None:
    raise ValueError("to be looked at")


def everything(env: TestEnvironment) -> str:
    """All that the services hold, as text."""
    services = env.world.services
    blobs: Any = services.blobs
    return f"{vars(services.memory)} {vars(blobs)}"


def test_OPS_01_many_runs_are_deleted_piece_by_piece_and_what_is_deleted_stays_so() -> None:
    env = TestEnvironment(app)
    for n in range(300):
        env.start(kept, id=f"r{n}").send(GO, n)
    env.run_until_idle()
    env.outage("30 days")
    maintenance = Maintenance(env.ports, code_version=env.world.code_version)
    for left in (250, 200, 150):
        assert maintenance.sweep(limit=50).deleted == 50
        assert len(env.world.services.memory.runs) == left
    assert maintenance.sweep(remaining=1.0).deleted == 0, "too little time to begin with any"
    env.advance(minutes=5)
    assert not env.world.services.memory.runs


def test_OPS_02_how_long_a_run_is_kept_goes_by_how_it_ended_and_open_runs_stay() -> None:
    env = TestEnvironment(app)
    env.start(kept, id="open")
    env.start(fails, id="failed")
    env.start(kept, id="completed").send(GO, 1)
    env.advance(days=31)
    assert sorted(run.id for run in env.world.services.memory.runs) == ["failed", "open"]


def test_OPS_03_nothing_of_a_deleted_run_is_left_and_a_deletion_that_failed_is_completed() -> None:
    clean = TestEnvironment(app)
    handle = clean.start(kept, id="the-run")
    for n in range(5):
        handle.send(GO, n, id=f"m{n}")
    clean.run_until_idle()
    assert "the-run" in everything(clean)
    clean.delete("the-run")
    assert "the-run" not in everything(clean)
    with pytest.raises(RunNotFound):
        clean.get("the-run")


def deliveries(*bodies: str) -> list[Delivery]:
    return [Delivery(id=f"d{n}", body=body, arrived_at=0.0, sequence=f"{n:020}") for n, body in enumerate(bodies)]


@app.workflow
async def one_item(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


def test_OPS_04_of_a_batch_only_what_failed_comes_back() -> None:
    env = TestEnvironment(app)
    for n in range(8):
        env.start(one_item, id=f"r{n}")
    env.run_until_idle()
    bodies = [to_body(Deliver(run_id=f"r{n}", id="m", name="go", body="1")) for n in range(8)]
    bodies[3:3] = ["{not json", to_body(Wake(run_id="unknown", id="w", reason="test"))]
    env.faults.fail_next_call("store.put_message")  # of the first
    container = env.world._start(Container)
    failed = container.process(deliveries(*bodies), remaining=120.0)
    assert sorted(failed) == ["d0", "d3"]
    assert [env.get(f"r{n}").status for n in range(1, 8)] == ["completed"] * 7
    assert sorted(container.process(deliveries(bodies[0]), remaining=120.0)) == []
    assert env.get("r0").status == "completed"


def test_OPS_05_whatever_is_redriven_from_a_dead_letter_queue_twice_changes_nothing() -> None:
    env = TestEnvironment(app)
    waiting = env.start(one_item, id="waiting")
    ended = env.start(one_item, id="ended")
    ended.send(GO, 1, id="m")
    env.run_until_idle()
    before = env.get("ended"), env.history("ended"), env.history("waiting")
    now = env.now.timestamp()
    letters = [
        to_body(envelope)
        for run_id in ("waiting", "ended", "gone")
        for envelope in (
            Wake(run_id=run_id, id="w", reason="test"),
            Start(run_id=run_id, id="s"),
            TimerFired(run_id=run_id, id="t", due_at=now),
        )
    ] + [to_body(Deliver(run_id="ended", id="m", name="go", body="1"))]
    container = env.world._start(Container)
    for _ in range(2):
        assert container.process(deliveries(*letters), remaining=120.0) == []
    assert (env.get("ended"), env.history("ended"), env.history("waiting")) == before
    waiting.send(GO, 7)
    assert waiting.result() == 7


@app.workflow
async def six_steps(ctx: Context) -> int:
    done = [await ctx.step(f"s{n}", work, n) for n in range(1, 6)]
    check(done)
    return await ctx.step("s6", work, len(done))


wrong: list[str] = []


def check(done: list[int]) -> None:
    if wrong:
        raise ValueError(f"plain code, after {len(done)}")


@pytest.mark.parametrize(("place", "again"), [("step", ["s5", "s6"]), ("plain", ["s6"])])
def test_OPS_06_a_failed_run_goes_on_from_where_it_failed_and_asking_twice_is_asking_once(
    place: str, again: list[str]
) -> None:
    env = TestEnvironment(app)
    wrong[:] = [place] if place == "plain" else []
    if place == "step":
        env.mock("s5").raises(NonRetryableError("no")).returns(5)
    handle = env.start(six_steps, id="r")
    with pytest.raises(RunFailed):
        handle.result()
    wrong.clear()
    before = dict(env.world.executions)
    env.retry("r")
    env.retry("r")
    assert handle.result() == 5
    after = env.world.executions
    assert [location for (_, location), count in after.items() if count > before.get(("r", location), 0)] == again
    assert len(env.world.services.memory.runs) == 1


@app.workflow
async def sleeper(ctx: Context) -> str:
    await ctx.sleep("2h")
    return "awake"


def test_OPS_07_after_a_restore_due_runs_without_a_wake_are_found_and_wakes_without_a_run_do_nothing() -> None:
    env = TestEnvironment(app)
    timers = env.world.services.timers
    assert isinstance(timers, MemoryTimers)
    handle = env.start(sleeper, id="kept")
    env.start(sleeper, id="lost")
    env.run_until_idle()
    env.world.services.store.delete_run("lost")  # the table is older than the schedules
    before = env.now
    assert len(timers.schedules) == 2
    for _ in range(2):
        env.faults.drop_next()  # and the schedule of the other is not there
    assert handle.result() == "awake"
    assert env.now - before <= timedelta(hours=2, minutes=3)
    env.advance(hours=3)
    assert [run.id for run in env.world.services.memory.runs] == ["kept"]


limited = App("ghosts")
limited.queue("narrow", concurrency=1)


@limited.workflow(singleton=Singleton("key"))
async def alone(ctx: Context, what: dict[str, str]) -> int:
    return await ctx.wait_for_signal(GO)


@pytest.mark.parametrize("how", ["deleted", "terminated"])
def test_OPS_08_a_holder_that_is_gone_gives_its_place_back(how: str) -> None:
    env = TestEnvironment(limited)
    env.start(alone, {"key": "k"}, id="ghost")
    env.run_until_idle()
    waiting = env.start(alone, {"key": "k"}, id="waiting")
    env.run_until_idle()
    gone: dict[str, Callable[[], None]] = {
        "deleted": lambda: env.world.services.store.delete_run("ghost"),
        "terminated": lambda: env.terminate("ghost"),
    }
    gone[how]()
    waiting.send(GO, 3)
    assert waiting.result(timeout="15m") == 3


@app.workflow
async def flaky(ctx: Context) -> int:
    return await ctx.step(Step("flaky", retries=0), work)


def test_OPS_06_a_run_that_completed_is_not_done_again() -> None:
    env = TestEnvironment(app)
    env.start(flaky, id="r").result()
    with pytest.raises(Exception, match="completed"):
        env.retry("r")
    assert env.world.executions["r", "flaky"] == 1
