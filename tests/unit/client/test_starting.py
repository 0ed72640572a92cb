import pytest

from durable.app import App
from durable.errors import (
    IdempotencyKeySpent,
    InvalidInput,
    InvalidName,
    LimitExceeded,
    NotAvailable,
    NotStorable,
    RunAlreadyExists,
    WorkflowNotRegistered,
)
from durable.model.envelope import Start
from durable.model.run import first_epoch
from tests.unit.client.worlds import Order, fulfil, nightly


def test_a_start_writes_one_record_and_sends_one_envelope(world) -> None:
    handle = world.client.start(fulfil, Order(id="o1"), id="r1", tags=["vip", "shop"])
    now = world.clock.now()
    run = world.client.get("r1")
    assert (handle.id, handle.workflow) == ("r1", fulfil)
    assert (run.workflow, run.version, run.status, run.input) == ("fulfil", "1", "pending", '{"id":"o1","total":1}')
    assert run.epoch == run.born == run.clean_epoch == first_epoch(now)
    assert (run.created_at, run.due_at, run.tags) == (now, now + 30, ("shop", "vip"))
    assert [(type(e), e.run_id) for e in world.sent] == [(Start, "r1")]


def test_a_run_gets_an_id_if_none_is_given(world) -> None:
    first, second = world.client.start(nightly), world.client.start(nightly)
    assert first.id != second.id
    assert world.client.get(first.id).input is None


def test_the_same_start_again_gives_the_same_run(world) -> None:
    first = world.client.start(fulfil, Order(id="o1"), id="r1")
    world.take_turn("r1")
    second = world.client.start(fulfil, Order(id="o1"), id="r1")
    assert first.id == second.id
    assert len(world.sent) == 1


def test_a_start_whose_envelope_was_lost_succeeds_and_the_next_one_sends_again(world) -> None:
    world.runs.failures = 1
    assert world.client.start(fulfil, Order(id="o1"), id="r1").id == "r1"
    assert world.sent == []
    assert world.client.get("r1").due_at is not None
    world.client.start(fulfil, Order(id="o1"), id="r1")
    assert len(world.sent) == 1


@pytest.mark.parametrize(
    ("workflow", "given"), [(fulfil, (Order(id="o2"),)), (fulfil, (Order(id="o1", total=2),)), (nightly, ())]
)
def test_an_id_is_not_shared_by_different_starts(world, workflow, given) -> None:
    world.client.start(fulfil, Order(id="o1"), id="r1")
    with pytest.raises(RunAlreadyExists, match='run "r1" exists already'):
        world.client.start(workflow, *given, id="r1")
    assert len(world.sent) == 1


def test_a_caller_may_insist_on_a_new_run(world) -> None:
    world.client.start(nightly, id="r1", on_conflict="error")
    with pytest.raises(RunAlreadyExists):
        world.client.start(nightly, id="r1", on_conflict="error")


def test_an_idempotency_key_starts_one_run(world) -> None:
    first = world.client.start(fulfil, Order(id="o1"), idempotency_key="order-1")
    second = world.client.start(fulfil, Order(id="o1"), idempotency_key="order-1")
    assert first.id == second.id
    with pytest.raises(RunAlreadyExists):
        world.client.start(fulfil, Order(id="o2"), idempotency_key="order-1")
    assert len(world.store.runs) == 1


def test_the_key_of_a_deleted_run_is_spent(world) -> None:
    run_id = world.client.start(nightly, idempotency_key="k").id
    world.store.delete_run(run_id)
    with pytest.raises(IdempotencyKeySpent, match=run_id):
        world.client.start(nightly, idempotency_key="k")


def test_a_workflow_is_started_by_name_with_json_from_outside(world) -> None:
    handle = world.client.start("fulfil", {"id": "o1", "total": 3}, id="r1")
    assert handle.workflow is fulfil
    assert world.client.get("r1").input == '{"id":"o1","total":3}'
    with pytest.raises(InvalidInput, match='input of workflow "fulfil": total: Input should be a valid integer'):
        world.client.start("fulfil", {"id": "o1", "total": "many"})
    with pytest.raises(WorkflowNotRegistered, match='no workflow "gone"; registered: fulfil, nightly'):
        world.client.start("gone")


def test_a_large_input_is_stored_apart(world) -> None:
    world.client.start(fulfil, Order(id="x" * 1000), id="r1")
    run = world.client.get("r1")
    assert (run.input, run.input_stored) == (None, True)
    assert world.store.get_payload("r1", "input") == f'{{"id":"{"x" * 1000}","total":1}}'
    world.client.start(fulfil, Order(id="x" * 1000), id="r1")
    with pytest.raises(RunAlreadyExists):
        world.client.start(fulfil, Order(id="y" * 1000), id="r1")


class Special(Order):
    gift: str


@pytest.mark.parametrize(
    ("start", "error", "says"),
    [
        (lambda c: c.start(fulfil, "o1"), InvalidInput, "Input should be a valid dictionary or instance of Order"),
        (lambda c: c.start(fulfil), InvalidInput, "it is missing; the workflow takes .*Order"),
        (lambda c: c.start(nightly, 3), InvalidInput, "it takes no input"),
        (lambda c: c.start(fulfil, Special(id="o", gift="g")), NotStorable, "gift would be lost"),
        (lambda c: c.start(fulfil, Order(id="x" * 300_000)), LimitExceeded, "the limit is 262,144 bytes"),
        (lambda c: c.start(nightly, id="a b"), InvalidName, "run id"),
        (lambda c: c.start(nightly, id="x" * 129), InvalidName, "at most 128 bytes"),
        (lambda c: c.start(nightly, idempotency_key=""), InvalidName, "idempotency key"),
        (lambda c: c.start(nightly, tags=["t" * 257]), InvalidName, "tag"),
        (lambda c: c.start(nightly, tags="vip"), InvalidName, "tags"),
        (lambda c: c.start(fulfil, Order(id="o"), tags=[f"t{n}" for n in range(10)]), LimitExceeded, "11 tags"),
        (lambda c: c.start(nightly, on_conflict="replace"), InvalidName, "on_conflict"),
        (lambda c: c.start(nightly, on_conflict="replace-terminal"), NotAvailable, "replace-terminal"),
        (lambda c: c.start(nightly, delay="1h"), NotAvailable, "delay"),
    ],
)
def test_a_refused_start_stores_and_sends_nothing(world, start, error, says) -> None:
    with pytest.raises(error, match=says):
        start(world.client)
    assert world.store.runs == []
    assert world.sent == []


def test_a_workflow_of_another_app_is_not_started(world) -> None:
    @App("other").workflow
    async def foreign(ctx) -> None: ...

    with pytest.raises(WorkflowNotRegistered, match=r"foreign 1.*registered: fulfil 1, nightly 1"):
        world.client.start(foreign)
