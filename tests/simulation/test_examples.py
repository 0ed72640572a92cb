"""The examples under everything that can go wrong: the same receipts as on a quiet day, or a failure that says why."""

from random import Random
from typing import Any

import pytest

from durable.client import Client
from durable.testing.simulation.baton import Stage
from durable.testing.simulation.quiet import check_all_ended
from durable.testing.simulation.script import Act
from durable.testing.simulation.simulated import Simulation
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload
from examples.orders.app import APPROVE, Approval, Item, Order, fulfil
from examples.orders.app import app as orders
from examples.warehouse.app import DELIVERED, Delivered, Shipment, ship
from examples.warehouse.app import app as warehouse

SEEDS = 120

ORDER = Order(order_id="A-1", customer="ada", items=[Item(sku="tea", cents=500)], approval_seconds=1_500)
SHIPMENT = Shipment(order_id="W-1", cents=900, halls=["north", "south"], delivery_seconds=1_200)


def plan_of_orders(random: Random) -> Plan:
    start, approve = random.uniform(0, 5), random.uniform(5, 60)
    return Plan(
        acts=[
            Act(start, "start", lambda client: _start(client, fulfil, ORDER)),
            Act(approve, "approve", _approve),
        ]
    )


def plan_of_warehouse(random: Random) -> Plan:
    start, deliver = random.uniform(0, 5), random.uniform(200, 400)
    return Plan(
        acts=[
            Act(start, "start", lambda client: _start(client, ship, SHIPMENT)),
            Act(deliver, "deliver", _deliver),
        ]
    )


def _start(client: Client, workflow: Any, given: Any) -> None:
    client.start(workflow, given, id="run")


def _approve(client: Client) -> None:
    client.send("run", APPROVE, Approval(approved=True, by="grace"), id="approval")


def _deliver(client: Client) -> None:
    client.publish_event(DELIVERED, Delivered(order_id="W-1", signed_by="ada"), id="delivered", buffer="30m")


def check_orders(ending: Ending) -> None:
    output = _output(ending)
    if output is not None and (output["outcome"], output["approved_by"]) != ("shipped", "grace"):
        raise Violation(f"the receipt is {output}")


def check_warehouse(ending: Ending) -> None:
    output = _output(ending)
    if output is not None and output["boxes"] != ["box from north", "box from south"]:
        raise Violation(f"the delivery is {output}")
    if output is not None and ending.fine and output["signed_by"] != "ada":
        raise Violation("the event, which is kept for half an hour, did not reach the run")


def _output(ending: Ending) -> Any:
    """What the run has returned; None where a step ran out of attempts, which deaths count as."""
    check_all_ended(ending.watch)
    run = next(run for run in ending.watch.store.runs if run.id == "run")
    if run.status == "completed":
        return ending.watch.output_of(run)
    if ending.fine or run.status != "failed":
        raise Violation(f"the run is {run.status}: {run.error or run.reason}")
    return None


EXAMPLES = [
    Workload(name="orders", apps=(orders,), plan=plan_of_orders, check=check_orders, rate=0.5, many=True),
    Workload(name="warehouse", apps=(warehouse,), plan=plan_of_warehouse, check=check_warehouse, rate=0.5, many=True),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_survives_everything(example: Workload) -> None:
    stage = Stage()
    for seed in range(SEEDS):
        try:
            Simulation(seed, stage, workload=example).run()
        except Exception as failure:
            failure.add_note(f"seed {seed} of {example.name}")
            raise
