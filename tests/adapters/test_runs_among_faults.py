"""Whole runs on moto while their requests fail: the outcome, and what is recorded, are those of an untroubled run."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from moto import mock_aws
from moto.core.models import botocore_stubber

from durable.aws import make_clients
from durable.errors import StoreUnavailable
from durable.testing import TestEnvironment
from examples.orders import app as orders
from examples.warehouse import app as warehouse
from tests.adapters.botocore_faults import Line
from tests.adapters.faults_of_aws import FAULTS
from tests.contract.builders import entries
from tests.contract.worlds import AwsWorld, moto_world
from tests.scenarios.emulated import emulated

pytestmark = pytest.mark.moto

T = TypeVar("T")
Script = Callable[[TestEnvironment], Any]

SHIPMENT = warehouse.Shipment(order_id="W-1", cents=900, halls=["north", "south"])
ORDER = orders.Order(order_id="A-1", customer="ada@example.com", items=[orders.Item(sku="cup", quantity=4, cents=650)])

BELOW = {"burst": 1, "every": 2}
"""Every second request fails; botocore tries again, and nobody above learns of it."""

ABOVE = [{"burst": 3, "every": every} for every in (23, 40)]
"""As many in a row as botocore tries: one call in so many is given up.

Not more often: the environment looks at the indexes too, as nobody does on AWS, and must get through in between.
"""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsWorld]:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))
    with mock_aws():
        yield moto_world(make_clients(), stack="among-faults")


@pytest.fixture
def line(world: AwsWorld) -> Line:
    """Everything that is asked of the table, and everything that is sent to a queue."""
    line = Line(botocore_stubber)
    line.attach(world.clients.dynamodb)
    line.attach(world.clients.sqs, "SendMessage")
    return line


def insist(perform: Callable[[], T]) -> T:
    """What a caller does who is told that a service did not answer."""
    for _ in range(50):
        try:
            return perform()
        except StoreUnavailable:
            continue
    raise AssertionError("it never got through")


def an_order(env: TestEnvironment) -> Any:
    handle = insist(lambda: env.start(orders.fulfil, ORDER, id="A-1"))
    insist(lambda: handle.send(orders.APPROVE, orders.Approval(approved=True, by="grace"), id="approval"))
    return insist(handle.result)


def a_shipment(env: TestEnvironment) -> Any:
    handle = insist(lambda: env.start(warehouse.ship, SHIPMENT, id="W-1"))
    for _ in range(10):  # time enough to recover: nobody keeps the event for later
        insist(lambda: env.advance("1m"))
    delivered = warehouse.Delivered(order_id="W-1", signed_by="ada")
    insist(lambda: env.publish_event(warehouse.DELIVERED, delivered, id="event"))
    return insist(handle.result)


SCRIPTS = {
    "order": (orders.app, an_order, ["A-1"]),
    "shipment": (warehouse.app, a_shipment, ["W-1", "W-1.pick", "W-1.pick#2"]),
}


@pytest.mark.parametrize("often", [BELOW, *ABOVE], ids=lambda often: f"{often['burst']} of {often['every']}")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_run_ends_as_it_would_have_without(name: str, often: dict[str, int], world: AwsWorld, line: Line) -> None:
    app, script, run_ids = SCRIPTS[name]
    with TestEnvironment(app, services=emulated(world)) as env:
        undisturbed = script(env), recorded(world, run_ids), executed(env, run_ids)
        requests = len(line.calls)
    with TestEnvironment(app, services=emulated(world)) as env:
        line.fail_often([it for it in FAULTS["dynamodb"] if it.attempts > 1 or often != BELOW], **often)
        receipt = script(env)
        line.mend()
        assert (receipt, recorded(world, run_ids)) == undisturbed[:2]
        bodies = executed(env, run_ids)
    assert len(line.happened) >= requests / 20
    assert bodies.keys() == undisturbed[2].keys()
    if often == BELOW:
        assert bodies == undisturbed[2], "nothing was told to anybody, so no body ran twice"


def recorded(world: AwsWorld, run_ids: list[str]) -> dict[str, set[str]]:
    """Where the runs have results."""
    return {run_id: {entry.location for entry in entries(world.store, run_id) if not entry.mark} for run_id in run_ids}


def executed(env: TestEnvironment, run_ids: list[str]) -> dict[Any, int]:
    """How often the body of each step ran."""
    return {key: times for key, times in env.world.executions.items() if key[0] in run_ids}
