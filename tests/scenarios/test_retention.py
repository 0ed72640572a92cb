"""An ended run goes when its time is over, with all that it has stored, and never while somebody needs it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from durable import (
    App,
    Blob,
    Context,
    DeletionRefused,
    Event,
    NonRetryableError,
    RunFailed,
    RunNotFound,
    Signal,
    Singleton,
    StateKey,
    Step,
    Update,
)
from durable.deletion import delete
from durable.engine.maintenance import Maintenance
from durable.engine.retention import expire
from durable.errors import StoreUnavailable
from durable.model.envelope import Deliver, Envelope
from durable.testing import TestEnvironment
from durable.testing.interception import intercepted
from durable.testing.services import SourceOfRuns, in_memory
from tests.scenarios.conftest import Stored, World

GO = Signal("go", int)
RENAME = Update("rename", str, int)
PAID = Event("paid", dict[str, str])
PROGRESS = StateKey("progress", int)
DAY = 86_400

app = App("kept")
broken: list[bool] = []


class Order(BaseModel):
    id: str


def work(n: int) -> int:
    if broken:
        raise NonRetryableError("broken")
    return n


def unwork(result: int, n: int) -> None: ...


def rows() -> list[str]:
    return ["row"] * 9


@app.remote_step
def print_label(order: Order) -> str:
    return order.id


@app.workflow(retention="30 days")
async def small(ctx: Context) -> int:
    return await ctx.step(work, 1)


@app.workflow(retention="30 days", singleton=Singleton(key="id"))
async def large(ctx: Context, order: Order) -> Blob[list[str]]:
    ctx.set_state(PROGRESS, 1)
    ctx.set_attributes(amount=1)
    ctx.add_tags("red")
    ctx.stream("talk").append("hello")
    await ctx.step(Step().undo(unwork), work, 1)
    await ctx.call(print_label, order)
    await ctx.child(small)
    request = await ctx.updates.next(RENAME)
    request.respond(len(request.arg))
    await ctx.wait_for_event(PAID, match={"id": order.id})
    await ctx.sleep("3 days")
    return await ctx.offload("rows", rows)


@app.workflow(retention={"completed": "2 days", "failed": "9 days"})
async def by_ending(ctx: Context) -> int:
    await ctx.wait_for_signal(GO)
    return await ctx.step(work, 1)


@app.workflow
async def for_good(ctx: Context) -> int:
    return 1


@app.workflow(retention="1 day")
async def parent(ctx: Context) -> int:
    return await ctx.child(small, id="kid") + await ctx.wait_for_signal(GO)


@app.workflow(retention="1 day")
async def counting(ctx: Context, n: int) -> int:
    await ctx.step(work, n)
    body = await ctx.wait_for_signal(GO)
    return body if n == 3 else await ctx.continue_as_new(counting, n + 1)


@pytest.fixture(autouse=True)
def _mended() -> None:
    broken.clear()


class LosingQueue:
    """Accepts everything, and loses some of it."""

    def __init__(self, runs: SourceOfRuns, lost: Callable[[Envelope], bool]) -> None:
        self._runs = runs
        self._lost = lost

    def send(self, envelope: Envelope) -> None:
        if not self._lost(envelope):
            self._runs.send(envelope)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)


def losing(lost: Callable[[Envelope], bool]) -> TestEnvironment:
    services = in_memory()
    queue: Any = LosingQueue(services.runs, lost)
    return TestEnvironment(app, services=replace(services, runs=queue))


def traces(lines: list[str], text: str) -> list[str]:
    return [line for line in lines if text in line]


def finished(env: TestEnvironment, run_id: str) -> None:
    handle = env.start(large, Order(id="o-7"), id=run_id)
    env.run_until_idle()
    handle.update(RENAME, "x")
    env.publish_event(PAID, {"id": "o-7"})
    handle.send(GO, 1)  # nobody reads it
    handle.result()


def exists(env: TestEnvironment, run_id: str) -> bool:
    return env.ports.store.get(run_id) is not None


# What goes


def test_ops_03_nothing_of_a_deleted_run_is_left(world: World, stored: Stored) -> None:
    env = world(app)
    finished(env, "order-7")
    assert len(traces(stored(env), "order-7")) > 5
    env.advance(days=29)
    assert exists(env, "order-7")
    env.advance(days=1, minutes=2)
    taken = [line for line in traces(stored(env), "order-7") if "taken" not in line]  # that one has a time to live
    assert taken == []
    assert env.list(large).runs == []
    assert traces(stored(env), "label") == []


def test_ops_02_how_long_a_run_is_kept_depends_on_how_it_ended(world: World) -> None:
    env = world(app)
    good, bad, ended = (env.start(by_ending, id=run_id) for run_id in ("good", "bad", "ended"))
    good.send(GO, 1)
    good.result()
    broken.append(True)
    bad.send(GO, 1)
    with pytest.raises(RunFailed):
        bad.result()
    env.terminate("ended")
    env.start(for_good, id="kept").result()
    env.advance(days=2, minutes=2)
    assert [exists(env, it.id) for it in (good, bad, ended)] == [False, True, True]
    env.advance(days=7)
    assert [exists(env, it.id) for it in (good, bad, ended)] == [False, False, True]
    env.advance(days=999)
    assert [exists(env, run_id) for run_id in ("ended", "kept")] == [True, True]


def test_an_id_is_free_again_and_a_message_that_comes_late_leaves_nothing_for_the_next_run(
    world: World, stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    env = world(app)
    env.start(small, id="r").result()
    env.advance(days=31)
    env.ports.runs.send(Deliver(run_id="r", id="late", name="go", body="1"))
    env.run_until_idle()
    assert traces(stored(env), "late") == []
    assert "run r does not exist: 1 messages to it are dropped" in caplog.text
    assert env.start(small, id="r").result() == 1


# What stays


def test_a_run_that_was_retried_is_not_deleted_under_way_and_is_kept_anew(world: World) -> None:
    env = world(app)
    broken.append(True)
    handle = env.start(by_ending, id="r")
    handle.send(GO, 1)
    with pytest.raises(RunFailed):
        handle.result()
    env.advance(days=8)
    env.retry("r")
    env.advance(days=3)
    with pytest.raises(RunFailed):
        handle.result()
    env.advance(days=5)
    assert exists(env, "r")
    env.advance(days=5)
    assert not exists(env, "r")


def test_a_child_whose_end_was_lost_stays_as_long_as_its_parent_waits() -> None:
    env = losing(lambda envelope: isinstance(envelope, Deliver) and envelope.run_id == "mum")
    env.start(parent, id="mum")
    env.advance(days=35)
    assert exists(env, "kid")
    env.terminate("mum")
    env.advance(days=2)
    assert [exists(env, run_id) for run_id in ("mum", "kid")] == [False, False]


def test_a_child_whose_parent_has_gone_on_need_not_stay(world: World) -> None:
    env = world(app)
    handle = env.start(parent, id="mum")
    env.advance(days=35)
    assert [exists(env, run_id) for run_id in ("mum", "kid")] == [True, False]
    handle.send(GO, 1)
    assert handle.result() == 2


def test_older_runs_of_a_lineage_that_goes_on_are_emptied_and_lead_to_its_end(world: World, stored: Stored) -> None:
    env = world(app)
    handle = env.start(counting, 1, id="c")
    handle.send(GO, 1)
    env.advance(days=9)
    assert env.get("c").id == "c~2"
    assert env.ports.store.load("c").entries == []
    handle.send(GO, 2)
    handle.send(GO, 3)
    assert handle.result() == 3
    env.advance(hours=20)
    assert env.get("c").id == "c~3"
    env.advance(hours=5)
    assert traces(stored(env), "c~") == []
    assert not exists(env, "c")


def test_a_run_whose_successor_has_not_copied_its_messages_stays_whole() -> None:
    env = losing(lambda envelope: envelope.run_id == "c~2")
    handle = env.start(counting, 1, id="c")
    for body in (1, 2, 3):
        handle.send(GO, body)
    env.run_until_idle()
    successor = env.ports.store.get("c~2")
    assert successor is not None
    assert successor.carries is not None
    env.outage("9 days")
    assert not expire(env.ports, "c")
    assert handle.result() == 3


# Whatever happens in between


def test_ops_01_a_deletion_that_is_cut_short_anywhere_is_completed_by_the_next_sweep(
    world: World, stored: Stored
) -> None:
    calls = 1
    while True:
        env = world(app)
        finished(env, "order-7")
        env.world.go_down(31 * DAY)
        left = calls

        def fail(name: str, perform: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise StoreUnavailable(f"{name} was made to fail")
            return perform()

        try:
            Maintenance(intercepted(env.ports, fail), code_version="v").sweep()
        except StoreUnavailable:
            calls += 1
        else:
            break
        env.advance(minutes=3)
        assert [line for line in traces(stored(env), "order-7") if "taken" not in line] == []
    assert calls > 9


def test_two_sweeps_at_once_delete_a_run_once(world: World) -> None:
    env = world(app)
    env.start(small, id="r").result()
    env.world.go_down(31 * DAY)
    ran: list[bool] = []

    def meanwhile(name: str, perform: Any) -> Any:
        if name == "store.delete_run" and not ran:
            ran.append(expire(env.ports, "r"))
        return perform()

    swept = Maintenance(intercepted(env.ports, meanwhile), code_version="v").sweep()
    assert (ran, swept.deleted, exists(env, "r")) == ([True], 1, False)


def test_a_retry_that_comes_first_wins_and_one_that_comes_later_finds_an_ended_run(world: World) -> None:
    env = world(app)
    broken.append(True)
    handle = env.start(by_ending, id="r")
    handle.send(GO, 1)
    with pytest.raises(RunFailed):
        handle.result()
    seen = env.ports.store.get("r")
    assert seen is not None
    env.retry("r")
    assert not delete(env.ports, seen)
    assert exists(env, "r")


# By hand


def test_a_client_deletes_a_run_with_its_lineage_and_its_children(world: World, stored: Stored) -> None:
    env = world(app)
    finished(env, "order-7")
    handle = env.start(counting, 1, id="c")
    for body in (1, 2, 3):
        handle.send(GO, body)
    handle.result()
    env.delete("order-7")
    env.delete("c")
    lines = [line for line in stored(env) if "taken" not in line and "lanes" not in line]
    assert [*traces(lines, "order-7"), *traces(lines, "c~"), *traces(lines, "'c'")] == []
    for run_id in ("order-7", "c"):
        with pytest.raises(RunNotFound):
            env.delete(run_id)


def test_a_client_does_not_delete_what_is_open_or_needed() -> None:
    env = losing(lambda envelope: isinstance(envelope, Deliver) and envelope.run_id == "mum")
    env.start(parent, id="mum")
    env.run_until_idle()
    with pytest.raises(DeletionRefused, match=r"it is suspended\. Cancel or terminate it first"):
        env.delete("mum")
    with pytest.raises(DeletionRefused, match='run "mum" waits for it'):
        env.delete("kid")
    env.terminate("mum")
    with pytest.raises(DeletionRefused, match="has yet to tell others"):
        env.delete("mum")
    env.run_until_idle()
    env.delete("mum")
    assert [exists(env, run_id) for run_id in ("mum", "kid")] == [False, False]
