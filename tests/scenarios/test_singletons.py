"""Of a singleton no more runs are under way for a key than its limit says; the others begin in order, or are refused."""

from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Context, LaneFull, RunAlreadyExists, Signal, Singleton
from durable.client import RunHandle
from durable.errors import RunFailed, RunWasCancelled
from durable.lanes import leave
from durable.model.envelope import Start
from durable.model.run import pending_run
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World


class Customer(BaseModel):
    id: str


class Sync(BaseModel):
    customer: Customer
    part: int = 0


GO = Signal("go", str)
OTHER = 70
"""A part of another customer."""
LANE = "singleton:sync:c-1"
app = App("singletons")
active: list[int] = []
order: list[int] = []
fail: set[int] = set()


def begin(part: int) -> None:
    active.append(part)
    order.append(part)
    assert len(active) == 1 or OTHER in active, "two at once"


def end(part: int) -> None:
    active.remove(part)
    if part in fail:
        fail.discard(part)
        raise ValueError("no")


@app.workflow(singleton=Singleton("customer.id", max_queue=2))
async def sync(ctx: Context, what: Sync) -> str:
    await ctx.step("begin", begin, what.part)
    said = await ctx.wait_for_signal(GO)
    await ctx.step("end", end, what.part)
    return said


@app.workflow(singleton=Singleton("customer.id"))
async def paged(ctx: Context, what: Sync) -> int:
    await ctx.step("begin", begin, what.part)
    await ctx.sleep("1m")
    await ctx.step("end", end, what.part)
    if what.part < 3:
        await ctx.continue_as_new(paged, Sync(customer=what.customer, part=what.part + 1))
    return what.part


@app.workflow(singleton=Singleton("customer.id"))
async def calm(ctx: Context, what: Sync) -> str:
    said = await ctx.wait_for_signal(GO)
    await ctx.step("end", str, what.part)
    return said


@pytest.fixture(autouse=True)
def forget() -> None:
    active.clear()
    order.clear()
    fail.clear()


def of(part: int, customer: str = "c-1") -> Sync:
    return Sync(customer=Customer(id=customer), part=part)


def finished(env: TestEnvironment, *run_ids: str) -> None:
    for run_id in run_ids:
        env.run_until_idle()
        env.send(run_id, GO, run_id)
        env.result(run_id)
    env.run_until_idle()


def test_runs_of_one_key_begin_one_after_another_and_in_order(world: World) -> None:
    env = world(app)
    for part in (1, 2, 3):
        env.start(sync, of(part), id=f"r{part}")
    env.start(sync, of(OTHER, "other"), id="other")
    env.run_until_idle()
    active.remove(OTHER)
    assert (order, env.get("r2").status, env.get("r3").started_at) == ([1, OTHER], "pending", None)
    finished(env, "r1", "r2", "r3")
    assert order == [1, OTHER, 2, 3]
    assert env.ports.store.read_lane(LANE, tickets=1) is None
    assert env.repairs == 0


def test_a_waiting_run_is_left_to_its_lane_however_long_it_waits(world: World) -> None:
    env = world(app)
    for part in (1, 2):
        env.start(sync, of(part), id=f"r{part}")
    env.advance(hours=3)
    waiting = env.get("r2")
    assert (waiting.status, waiting.due_at, waiting.started_at) == ("pending", None, None)
    assert waiting.reason == f"a slot of {LANE}"
    finished(env, "r1", "r2")
    assert order == [1, 2]


def test_a_run_that_came_by_another_way_takes_no_turn_without_a_slot(world: World) -> None:
    env = world(app)
    env.start(sync, of(1), id="r1")
    env.run_until_idle()
    run, _ = pending_run(
        id="r2", workflow="sync", version="1", input=of(2).model_dump_json(), input_digest="", writer="w",
        now=env.now.timestamp(), lane=LANE,
    )  # fmt: skip
    env.ports.store.create(run)
    env.ports.runs.send(Start(run_id="r2", id="start"))
    env.advance(hours=1)
    assert (order, env.get("r2").status, env.get("r2").due_at) == ([1], "pending", None)
    assert env.get("r2").reason == f"a slot of {LANE}"
    finished(env, "r1", "r2")
    assert order == [1, 2]
    assert env.repairs == 0


def test_beyond_max_queue_a_start_is_refused_and_nothing_is_stored(world: World) -> None:
    env = world(app)
    for part in (1, 2, 3):
        env.start(sync, of(part), id=f"r{part}")
    with pytest.raises(LaneFull, match="2 runs wait"):
        env.start(sync, of(4), id="r4", idempotency_key="k4")
    assert env.ports.store.get("r4") is None
    finished(env, "r1")
    env.start(sync, of(4), id="r4", idempotency_key="k4")
    finished(env, "r2", "r3", "r4")
    assert order == [1, 2, 3, 4]


def test_the_same_start_once_more_is_the_same_run_also_where_the_queue_is_full(world: World) -> None:
    env = world(app)
    keyed = [env.start(sync, of(part), idempotency_key=f"k{part}").id for part in (1, 2, 3)]
    again = [env.start(sync, of(part), idempotency_key=f"k{part}").id for part in (1, 2, 3)]
    assert keyed == again
    with pytest.raises(RunAlreadyExists):
        env.start(sync, of(9), id=keyed[0])
    finished(env, *keyed)
    assert order == [1, 2, 3]


def test_an_ended_run_that_is_started_once_more_takes_no_slot(world: World) -> None:
    env = world(app)
    env.start(sync, of(1), id="r1")
    finished(env, "r1")
    env.start(sync, of(1), id="r1")
    env.run_until_idle()
    assert env.ports.store.read_lane(LANE, tickets=1) is None


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
def test_a_waiting_run_that_is_cancelled_frees_its_place(world: World, mode: str) -> None:
    env = world(app)
    for part in (1, 2, 3):
        env.start(sync, of(part), id=f"r{part}")
    env.run_until_idle()
    env.cancel("r2", mode)  # type: ignore[arg-type]
    env.run_until_idle()
    with pytest.raises(RunWasCancelled):
        env.result("r2")
    finished(env, "r1", "r3")
    assert order == [1, 3]


@pytest.mark.parametrize("mode", ["graceful", "terminate"])
def test_a_holder_that_is_cancelled_frees_its_slot(world: World, mode: str) -> None:
    env = world(app)
    for part in (1, 2):
        env.start(sync, of(part), id=f"r{part}")
    env.run_until_idle()
    env.cancel("r1", mode)  # type: ignore[arg-type]
    active.clear()
    finished(env, "r2")
    assert order == [1, 2]


def test_a_retried_run_waits_for_whoever_has_the_slot_now(world: World) -> None:
    env = world(app)
    fail.add(1)
    for part in (1, 2):
        env.start(sync, of(part), id=f"r{part}")
    env.run_until_idle()
    env.send("r1", GO, "go")
    env.run_until_idle()
    with pytest.raises(RunFailed):
        env.result("r1")
    env.retry("r1")
    env.advance(minutes=5)
    assert (env.get("r1").status, order) == ("suspended", [1, 2])
    env.send("r2", GO, "go")
    env.run_until_idle()
    assert env.result("r2") == "go"


def test_a_late_word_of_an_earlier_end_does_not_take_the_slot_of_a_retried_run(world: World) -> None:
    env = world(app)
    fail.add(1)
    env.start(sync, of(1), id="r1")
    env.run_until_idle()
    env.send("r1", GO, "go")
    env.run_until_idle()
    env.retry("r1")
    leave(env.ports, LANE, "r1")
    env.run_until_idle()
    assert env.ports.store.read_lane(LANE, tickets=1) is None


def test_a_run_that_continues_keeps_its_slot_to_the_end_of_its_lineage(world: World) -> None:
    env = world(app)
    env.start(paged, of(1), id="first")
    env.start(paged, of(9), id="second")
    assert env.result("second") == 9
    assert order == [1, 2, 3, 9]
    assert env.repairs == 0


def test_a_run_that_is_purged_while_it_holds_a_slot_does_not_keep_it(world: World) -> None:
    env = world(app)
    for part in (1, 2):
        env.start(sync, of(part), id=f"r{part}")
    env.run_until_idle()
    env.ports.store.delete_run("r1")
    active.clear()
    env.advance(minutes=10)
    finished(env, "r2")
    assert order == [1, 2]


def second_run(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.start(calm, of(2), id="second")
    for run_id in (handle.id, "second"):
        env.run_until_idle()
        env.send(run_id, GO, run_id, id=f"go-{run_id}")


def test_a_death_at_any_call_neither_loses_the_slot_nor_lets_two_in() -> None:
    TestEnvironment(app).run_crash_matrix(calm, of(1), script=second_run)
