"""What apps say about queues and singletons is checked when it is said, and comes down to lanes."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from durable.app import App
from durable.context import Context
from durable.definitions import Singleton
from durable.errors import InvalidInput, LimitExceeded
from durable.flow import lane_of_call, lane_of_run
from durable.model.lane import HOLDERS, LaneClaim, LaneRate, LaneSpec, lane_name
from durable.options import Call, Rate


class Address(TypedDict):
    city: str


@dataclass
class Customer:
    id: int
    address: Address


class Order(BaseModel):
    customer: Customer | None
    note: Annotated[str, Field(max_length=9)] = ""
    more: dict[str, Any] = {}


def call(*args: Any, **kwargs: Any) -> str:
    return json.dumps({"args": args, "kwargs": kwargs})


def app_with(**options: Any) -> App:
    app = App("shop")
    app.queue("labels", **{"concurrency": 2, **options})
    return app


def test_a_queue_that_is_not_limited_has_no_lane() -> None:
    assert lane_of_call(app_with().queues, "other", call(1)) is None


def test_a_queue_without_a_key_is_one_lane() -> None:
    app = app_with(concurrency=None, rate=Rate(100, per="1m"), order="lifo")
    spec = LaneSpec(name="queue:labels", rate=LaneRate(100, 60.0), order="lifo")
    assert lane_of_call(app.queues, "labels", call("x"), priority=3) == LaneClaim(spec=spec, priority=3)


def test_a_key_makes_a_lane_for_each_of_its_values() -> None:
    claim = lane_of_call(app_with(key="customer.id").queues, "labels", call({"customer": {"id": 7}}, 2))
    assert claim == LaneClaim(spec=LaneSpec(name="queue:labels:7", limit=2))


def test_fairness_keeps_one_lane_for_all_values_of_the_key() -> None:
    app = app_with(key="customer.id", fairness="key")
    claim = lane_of_call(app.queues, "labels", call(order={"customer": {"id": "ü"}}))
    assert claim == LaneClaim(spec=LaneSpec(name="queue:labels", limit=2, fair=True), fairness_key="ü")


@pytest.mark.parametrize("given", [{}, {"customer": None}, {"customer": {"id": None}}, {"customer": {"id": [1]}}, "x"])
def test_arguments_that_have_no_value_at_the_key_are_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r'a call on queue "labels": it has .* at "customer.id"'):
        lane_of_call(app_with(key="customer.id").queues, "labels", call(given))


def test_names_of_lanes_do_not_run_into_one_another() -> None:
    names = {
        lane_name("queue", "a"), lane_name("queue", "a:b"), lane_name("queue", "a", "b"), lane_name("queue", "a", ""),
        lane_name("singleton", "a", "b"), lane_name("queue", "a%3Ab"), lane_name("queue", "a", "x" * 500),
        lane_name("queue", "a", "x" * 501), lane_name("queue", "a", "ü#/\n"),
    }  # fmt: skip
    assert len(names) == 9
    assert all(len(name) <= 200 and name.isascii() and name.isprintable() for name in names)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"concurrency": None}, "limits nothing"),
        ({"concurrency": 0}, "1 or more"),
        ({"order": "random"}, '"fifo" or "lifo"'),
        ({"fairness": "key"}, "needs key="),
        ({"fairness": "id", "key": "id"}, 'must be "key"'),
        ({"fairness": "key", "key": "id", "order": "lifo"}, "contradicts"),
        ({"key": "a..b"}, "no path"),
        ({"key": ""}, "no path"),
    ],
)
def test_a_queue_that_contradicts_itself_is_refused(options: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        app_with(**options)


def test_more_slots_than_a_lane_can_have_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="1,000 slots"):
        app_with(concurrency=HOLDERS + 1)


def test_a_queue_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        app_with().queue("labels", concurrency=3)


@pytest.mark.parametrize("path", ["customer.id", "customer.address.city", "note", "more.anything.goes"])
def test_a_key_that_the_first_argument_has_is_accepted(path: str) -> None:
    app = App("shop")

    @app.remote_step(queue="labels")
    def print_label(order: Order) -> None: ...

    app.queue("labels", concurrency=1, key=path)

    @app.remote_step(queue="labels", name="again")
    def again(order: Order) -> None: ...

    assert set(app.remote_steps) == {"print_label", "again"}


@pytest.mark.parametrize(
    ("path", "says"),
    [("client.id", 'Order has no "client"; it has customer, note, more'), ("note.id", 'str has no "id"'), ("customer.address.zip", 'Address has no "zip"')],
)  # fmt: skip
@pytest.mark.parametrize("queue_first", [True, False])
def test_a_key_that_the_first_argument_lacks_is_refused(path: str, says: str, queue_first: bool) -> None:
    app = App("shop")

    def print_label(order: Order) -> None: ...

    acts = [lambda: app.queue("labels", concurrency=1, key=path), lambda: app.remote_step(queue="labels")(print_label)]
    first, second = acts if queue_first else reversed(acts)
    first()
    with pytest.raises(ValueError, match=says):
        second()


def test_a_key_of_a_remote_step_without_arguments_is_refused() -> None:
    app = app_with(key="id")
    with pytest.raises(ValueError, match="takes none"):

        @app.remote_step(queue="labels")
        def nothing() -> None: ...


@pytest.mark.parametrize("priority", [-1_001, 1_001])
def test_a_priority_beyond_the_range_is_refused(priority: int) -> None:
    assert Call(priority=1_000).priority == 1_000
    with pytest.raises(ValueError, match=r"Call\(priority=...\) must be -?1000 or"):
        Call(priority=priority)


def test_a_singleton_has_a_lane_for_each_value_of_its_key() -> None:
    app = App("shop")

    @app.workflow(singleton=Singleton("customer.id", limit=2, max_queue=5))
    async def sync(ctx: Context, order: Order) -> None: ...

    given = '{"customer":{"id":7,"address":{"city":"x"}}}'
    assert lane_of_run(sync, given) == LaneSpec(name="singleton:sync:7", limit=2, max_queue=5)
    with pytest.raises(InvalidInput, match=r'the input of workflow "sync": it has nothing at "customer.id"'):
        lane_of_run(sync, '{"customer":null}')


def test_a_workflow_that_is_no_singleton_needs_no_slot() -> None:
    app = App("shop")

    @app.workflow
    async def plain(ctx: Context, order: Order) -> None: ...

    assert lane_of_run(plain, "{}") is None


@pytest.mark.parametrize(
    "singleton",
    [Singleton("nope"), Singleton("customer.id", limit=0), Singleton("customer.id", max_queue=-1), Singleton("")],
)
def test_a_singleton_that_makes_no_sense_is_refused(singleton: Singleton) -> None:
    app = App("shop")
    with pytest.raises(ValueError, match="Singleton of workflow"):

        @app.workflow(singleton=singleton)
        async def sync(ctx: Context, order: Order) -> None: ...

    with pytest.raises(ValueError, match="takes none"):

        @app.workflow(singleton=Singleton("id"))
        async def nightly(ctx: Context) -> None: ...

    with pytest.raises(ValueError, match='list has no "id"'):

        @app.workflow(singleton=Singleton("id"))
        async def several(ctx: Context, orders: list[Order]) -> None: ...
