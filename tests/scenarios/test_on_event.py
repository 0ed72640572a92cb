"""An event starts workflows: a run for each, or one for what was collected, and each event is in exactly one run."""

from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Batch, Context, Event, Workflow
from durable.model.envelope import Publish
from durable.model.subscription import event_run_id
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World


class Ordered(BaseModel):
    id: str
    customer: str = "c"
    note: str = ""


ORDERED = Event("order.placed", Ordered)
BATCHED = Event("batched", Ordered)
KEYED = Event("keyed", Ordered)
QUIET = Event("quiet", Ordered)
QUIET_BATCH = Event("quiet-batch", Ordered)

app = App("on-event")


@app.workflow(tags=["orders"])
async def fulfil(ctx: Context, order: Ordered) -> str:
    return order.id


@app.workflow
async def audit(ctx: Context, order: dict[str, Any]) -> str:
    await ctx.sleep("1m")
    return f"audited {order['id']}"


@app.workflow
async def refuses(ctx: Context, number: int) -> int:
    return number


@app.workflow
async def together(ctx: Context, orders: list[Ordered]) -> str:
    return " ".join(order.id for order in orders)


@app.workflow
async def when_quiet(ctx: Context, orders: list[Ordered]) -> str:
    return " ".join(order.id for order in orders)


anything: Workflow[Any, Any] = refuses
app.on_event(ORDERED, anything)
app.on_event(ORDERED, fulfil)
as_dict: Workflow[Any, Any] = audit
app.on_event(ORDERED, as_dict)
app.on_event(BATCHED, together, batch=Batch(3, window="1m"))
app.on_event(KEYED, together, batch=Batch(2, window="1m"), key="customer")
app.on_event(QUIET, when_quiet, debounce="10s")
app.on_event(QUIET_BATCH, when_quiet, debounce="10s", batch=Batch(3, window="25s"))


def publish(env: TestEnvironment, event: Event[Ordered], *ids: str, **fields: Any) -> None:
    for order in ids:
        env.publish_event(event, Ordered(id=order, **fields), id=order)


def outputs(env: TestEnvironment, workflow: Workflow[Any, Any]) -> list[str]:
    rows = sorted(env.list(workflow).runs, key=lambda row: row.id)
    return [str(env.result(row.id, timeout=0)) for row in rows]


def test_each_event_starts_each_workflow_once(world: World) -> None:
    with world(app) as env:
        for _ in range(3):
            publish(env, ORDERED, "o-1")
            env.run_until_idle()
            env.advance(minutes=10)
        assert env.result("evt:o-1:fulfil") == "o-1"
        assert env.result("evt:o-1:audit") == "audited o-1"
        assert env.get("evt:o-1:fulfil").tags == ("orders",)
        assert (env.count(fulfil), env.count(audit)) == (1, 1)


def test_a_workflow_that_does_not_take_the_payload_does_not_stop_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with world(app) as env:
        publish(env, ORDERED, "o-1")
        assert env.result("evt:o-1:fulfil") == "o-1" if env.run_until_idle() is None else False
        assert env.count(refuses) == 0
        assert "starts no refuses" in caplog.text


def test_ids_that_are_no_part_of_a_run_id_will_do(world: World) -> None:
    with world(app) as env:
        for order in ("o/1", "o~1", "x" * 200):
            publish(env, ORDERED, order)
            env.run_until_idle()
            assert env.result(event_run_id(order, "fulfil")) == order


def test_what_starts_runs_gives_its_headers_on(world: World) -> None:
    with world(app) as env:
        env.publish_event(ORDERED, Ordered(id="o-1"), id="o-1", headers={"traceparent": "00-1"})
        env.publish_event(BATCHED, Ordered(id="o-1"), id="o-1", headers={"traceparent": "00-1"})
        env.advance(minutes=2)
        assert env.get("evt:o-1:fulfil").headers == {"traceparent": "00-1"}
        assert env.get("evt:o-1:together").headers == {"traceparent": "00-1"}


def test_a_batch_is_full_or_its_window_is_over(world: World) -> None:
    with world(app) as env:
        publish(env, BATCHED, "1", "2", "3", "4")
        env.run_until_idle()
        assert outputs(env, together) == ["1 2 3"]
        env.advance(seconds=50)
        publish(env, BATCHED, "5")
        env.advance(seconds=11)
        assert outputs(env, together) == ["1 2 3", "4 5"]
        env.advance(hours=1)
        assert env.count(together) == 2
        publish(env, BATCHED, "6")
        env.advance(minutes=2)
        assert outputs(env, together) == ["1 2 3", "4 5", "6"]
        assert env.get("evt:6:together").parent == "on.batched.together"


def test_an_event_that_comes_again_is_in_no_other_batch(world: World) -> None:
    with world(app) as env:
        for _ in range(3):
            publish(env, BATCHED, "1")
            env.run_until_idle()
            env.advance(minutes=10)
        assert outputs(env, together) == ["1"]


def test_events_are_collected_apart_for_each_key(world: World) -> None:
    with world(app) as env:
        publish(env, KEYED, "1", customer="a")
        publish(env, KEYED, "2", customer="b b/ü")
        publish(env, KEYED, "3", customer="a")
        env.run_until_idle()
        assert outputs(env, together) == ["1 3"]
        env.advance(minutes=2)
        assert outputs(env, together) == ["1 3", "2"]


def test_debounced_events_are_one_run_once_it_is_quiet(world: World) -> None:
    with world(app) as env:
        for n in range(10):
            publish(env, QUIET, str(n))
            env.advance(seconds=9)
        assert outputs(env, when_quiet) == []
        env.advance(seconds=2)
        assert outputs(env, when_quiet) == ["0 1 2 3 4 5 6 7 8 9"]


def test_a_debounced_batch_closes_when_it_is_quiet_full_or_old(world: World) -> None:
    with world(app) as env:
        publish(env, QUIET_BATCH, "1")
        env.advance(seconds=11)
        publish(env, QUIET_BATCH, "2", "3", "4")
        env.run_until_idle()
        assert outputs(env, when_quiet) == ["1", "2 3 4"]
        for n in (5, 6):
            publish(env, QUIET_BATCH, str(n))
            env.advance(seconds=9)
        env.advance(seconds=1.5)
        assert outputs(env, when_quiet) == ["1", "2 3 4", "5 6"]


def test_events_that_are_too_large_together_are_several_runs(world: World) -> None:
    with world(app) as env:
        publish(env, BATCHED, "1", "2", "3", note="x" * 120_000)
        env.run_until_idle()
        env.advance(minutes=3)
        assert outputs(env, together) == ["1 2", "3"]


def test_a_collector_goes_on_for_long_with_a_short_history() -> None:
    with TestEnvironment(app) as env:
        for n in range(300):
            publish(env, BATCHED, f"{n:03d}")
            env.run_until_idle()
        assert env.count(together) == 100
        assert len(env.history("on.batched.together")) < 200
        assert not [
            message for message in env.world.services.memory.mailbox("on.batched.together") if message.kind == "child"
        ]


def test_a_payload_that_does_not_fit_is_in_no_batch(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with world(app) as env:
        env.publish_event("batched", {"no": "order"})
        publish(env, BATCHED, "1")
        env.advance(minutes=2)
        assert outputs(env, together) == ["1"]
        assert "starts no together" in caplog.text


def test_collectors_are_not_among_what_can_be_started() -> None:
    assert {workflow.name for workflow in app.workflows} == {"fulfil", "audit", "refuses", "together", "when_quiet"}


def test_what_cannot_work_is_refused_when_it_is_registered() -> None:
    other = App("other")

    @other.workflow
    async def nothing(ctx: Context) -> None: ...

    @other.workflow
    async def one(ctx: Context, order: Ordered) -> None: ...

    @other.workflow
    async def many(ctx: Context, orders: list[Ordered]) -> None: ...

    untyped: Any = other
    with pytest.raises(TypeError, match="takes no input"):
        untyped.on_event(ORDERED, nothing)
    with pytest.raises(TypeError, match=r"Declare its input as list\[Ordered\]"):
        untyped.on_event(ORDERED, one, batch=Batch(3, window=1))
    with pytest.raises(ValueError, match='has no field "buyer"'):
        other.on_event(ORDERED, many, batch=Batch(3, window=1), key="buyer")
    with pytest.raises(ValueError, match="add batch"):
        untyped.on_event(ORDERED, one, key="customer")
    other.on_event(ORDERED, one)
    with pytest.raises(ValueError, match="already"):
        other.on_event(ORDERED, one)


def test_an_event_reaches_its_workflows_by_any_way() -> None:
    with TestEnvironment(app) as env:
        now = env.ports.clock.now()
        env.ports.timers.send(Publish(event="order.placed", id="o-9", body='{"id": "o-9"}', at=now))
        env.run_until_idle()
        assert env.result("evt:o-9:fulfil") == "o-9"
