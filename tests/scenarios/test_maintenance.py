"""Whatever should have gone on and did not is found within two minutes; what goes on by itself is left alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from durable import App, Context, RunTimedOut, Signal, Singleton
from durable.engine.maintenance import Maintenance
from durable.errors import RunFailed, RunWasCancelled
from durable.model.envelope import Envelope, Start, Wake
from durable.testing import TestEnvironment
from durable.testing.services import SourceOfRuns, in_memory

GO = Signal("go", int)
FOUND_WITHIN = 120.0
LEASE = 125.0
"""What a turn of the test environment takes at most, and the margin of its lease."""

app = App("orphans")
later = App("orphans")
broken: list[bool] = []
began: list[int] = []


def work(n: int) -> int:
    began.append(n)
    if broken:
        raise ValueError("broken")
    return n


@app.workflow
async def two_steps(ctx: Context) -> int:
    return await ctx.step("a", work, 1) + await ctx.step("b", work, 2)


@app.workflow
async def parent(ctx: Context) -> int:
    return await ctx.child(two_steps, id="kid")


@app.workflow(timeout="1h")
async def waiting(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def continued(ctx: Context, n: int) -> int:
    return n if n == 2 else await ctx.continue_as_new(continued, n + 1)


@app.workflow(singleton=Singleton(key="id"))
async def alone(ctx: Context, order: dict[str, str]) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def changing(ctx: Context) -> int:
    await ctx.wait_for_signal(GO)
    return await ctx.step("a", work, 1)


@later.workflow(name="changing")
async def changed(ctx: Context) -> int:
    await ctx.sleep("1s")
    return await ctx.wait_for_signal(GO)


@pytest.fixture(autouse=True)
def _mended() -> None:
    broken.clear()
    began.clear()


class LosingQueue:
    """Accepts everything, and loses what it is told to."""

    def __init__(self, runs: SourceOfRuns) -> None:
        self._runs = runs
        self.lost: Callable[[Envelope], bool] = lambda _: False
        self.losses = 0

    def send(self, envelope: Envelope) -> None:
        if self.lost(envelope):
            self.losses += 1
        else:
            self._runs.send(envelope)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)


def losing() -> tuple[TestEnvironment, LosingQueue]:
    services = in_memory()
    queue = LosingQueue(services.runs)
    runs: Any = queue
    return TestEnvironment(app, services=replace(services, runs=runs)), queue


def seconds(env: TestEnvironment) -> float:
    return env.now.timestamp()


def any_wake(envelope: Envelope) -> bool:
    return isinstance(envelope, Wake | Start)


# What is lost between two turns


def test_a_start_that_is_lost() -> None:
    env, queue = losing()
    queue.lost = any_wake
    handle, before = env.start(two_steps, id="r"), seconds(env)
    assert handle.result() == 3
    assert seconds(env) - before <= FOUND_WITHIN
    assert (queue.losses, env.repairs) == (1, 1)


def test_the_start_of_a_child_and_that_of_a_successor() -> None:
    for workflow, args, expected in ((parent, (), 3), (continued, (1,), 2)):
        env, queue = losing()
        queue.lost = lambda envelope: isinstance(envelope, Start) and envelope.run_id in {"kid", "r~2"}
        handle, before = env.start(workflow, *args, id="r"), seconds(env)
        assert handle.result() == expected
        assert seconds(env) - before <= FOUND_WITHIN
        assert (queue.losses, env.repairs) == (1, 1)


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
def test_the_wake_of_a_run_that_is_asked_to_end(mode: Any) -> None:
    env, queue = losing()
    mum = env.start(waiting, id="r")
    env.run_until_idle()
    queue.lost = any_wake
    before = seconds(env)
    env.cancel("r", mode)
    with pytest.raises(RunWasCancelled):
        mum.result()
    env.advance(seconds=FOUND_WITHIN - (seconds(env) - before))
    run = env.get("r")
    assert (run.status, run.outbox, queue.losses) == ("cancelled", None, 1)


def test_the_wake_of_a_run_that_is_retried() -> None:
    env, queue = losing()
    broken.append(True)
    handle = env.start(two_steps, id="r")
    with pytest.raises(RunFailed):
        handle.result()
    broken.clear()
    queue.lost = any_wake
    before = seconds(env)
    env.retry("r")
    assert handle.result() == 3
    assert seconds(env) - before <= FOUND_WITHIN
    assert (queue.losses, env.repairs) == (1, 1)


def test_the_timer_of_a_run_that_reaches_its_timeout() -> None:
    env = TestEnvironment(app)
    handle, before = env.start(waiting, id="r"), seconds(env)
    env.run_until_idle()
    (schedule,) = env.world.services.timers.schedules  # type: ignore[attr-defined]
    env.world.services.timers.drop_schedule(schedule)  # type: ignore[attr-defined]
    with pytest.raises(RunTimedOut):
        handle.result()
    assert seconds(env) - before <= 3600 + FOUND_WITHIN
    assert env.repairs == 1


def test_the_wake_of_a_singleton_whose_turn_has_come() -> None:
    env, queue = losing()
    first, second = env.start(alone, {"id": "c"}, id="first"), env.start(alone, {"id": "c"}, id="second")
    second.send(GO, 2)
    env.run_until_idle()
    queue.lost = lambda envelope: isinstance(envelope, Start) and envelope.run_id == "second"
    first.send(GO, 1)
    assert first.result() == 1
    before = seconds(env)
    env.run_until_idle()
    assert queue.losses >= 1
    queue.lost = lambda _: False
    assert second.result() == 2
    assert seconds(env) - before <= FOUND_WITHIN


# Who dies


@pytest.mark.parametrize("at", range(1, 8))
def test_a_run_whose_invocation_died_and_whose_wake_is_lost_with_it(at: int) -> None:
    env = TestEnvironment(app)
    env.world.lose_wakes_of_killed = True
    handle, before = env.start(two_steps, id="r"), seconds(env)
    env.crash_at(at)
    assert handle.result() == 3
    assert seconds(env) - before <= LEASE + FOUND_WITHIN
    assert env.repairs <= 1


@pytest.mark.parametrize("name", ["runs.send", "store.clear_outbox"])
def test_an_ended_run_whose_invocation_died_before_it_told_its_parent(name: str) -> None:
    env = TestEnvironment(app)
    handle = env.start(parent, id="r")
    env.run_until_idle()
    clean = env.calls
    assert handle.result() == 3
    at = max(number for number, call in enumerate(clean, 1) if call == name and "store.settle" in clean[:number])
    env = TestEnvironment(app)
    env.world.lose_wakes_of_killed = True
    handle, before = env.start(parent, id="r"), seconds(env)
    env.crash_at(at)
    assert handle.result() == 3
    assert seconds(env) - before <= LEASE + FOUND_WITHIN
    env.advance(seconds=FOUND_WITHIN)
    kid = env.ports.store.get("kid")
    assert kid is not None
    assert (kid.outbox, kid.due_at) == (None, None)


def test_a_run_that_other_code_has_blocked_is_tried_after_the_next_deployment() -> None:
    env = TestEnvironment(app)
    handle = env.start(changing, id="r")
    env.run_until_idle()
    env.deploy(later)
    handle.send(GO, 1)
    env.run_until_idle()
    assert handle.status() == "blocked"
    env.advance(days=1)
    before = seconds(env)
    env.deploy(app)
    assert handle.result() == 1
    assert seconds(env) - before <= FOUND_WITHIN


# What needs no help


def test_a_run_that_is_at_work_for_long_is_left_alone() -> None:
    env = TestEnvironment(app)
    handle = env.start(waiting, id="r")
    env.run_until_idle()
    env.faults.freeze("110s", at=2)  # it has its lease, and was due when it began
    env.cancel("r")
    env.run_until_idle()
    assert handle.status() == "cancelled"
    assert env.repairs == 0


def test_nothing_is_repaired_twice_by_two_sweeps_at_once() -> None:
    env, queue = losing()
    queue.lost = any_wake
    handle = env.start(two_steps, id="r")
    env.outage("3m")
    queue.lost = lambda _: False
    sweeps = [Maintenance(env.ports, code_version="deployment-1").sweep() for _ in range(2)]
    assert [sweep.woken for sweep in sweeps] == [1, 1], "a wake too many"
    assert handle.result() == 3
    assert began == [1, 2]


def test_messages_are_never_among_what_maintenance_has_to_find() -> None:
    env, queue = losing()
    queue.lost = any_wake
    handle = env.start(waiting, id="r")
    env.advance(minutes=2)
    handle.send(GO, 7)
    env.run_until_idle()
    assert handle.result() == 7
    assert env.repairs == 1
