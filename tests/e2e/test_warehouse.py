"""The warehouse example, deployed: a step in place, two children, a remote step and an event, under the roles of the template."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import FAST
from tests.e2e.deployment import Deployment, Sam, Say, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

STACK = "warehouse"


@pytest.fixture(scope="module")
def warehouse(sam: Sam, say: Say) -> Deployment:
    say("sam deploy, with the warehouse")
    return sam.deploy(STACK, FAST | {"App": "examples.warehouse.app:app"})


def test_a_shipment_is_charged_picked_labelled_and_delivered(warehouse: Deployment, say: Say) -> None:
    shipment = {"order_id": "W-1", "cents": 900, "halls": ["north", "south"]}
    status, run = warehouse.request("POST", "/runs", {"workflow": "ship", "input": shipment, "id": "W-1"})
    assert status // 100 == 2, run
    say("started; wait until the boxes are picked and the label is printed")
    expect(warehouse, lambda: "event" in str(shown(warehouse).get("waiting_for")), seconds=90)

    say("the carrier tells the bus")
    detail = json.dumps({"order_id": "W-1", "signed_by": "ada"})
    entry = {"Source": "carrier", "DetailType": "carrier.delivered", "Detail": detail}
    warehouse.emulator.client("events").put_events(Entries=[entry])
    expect(warehouse, lambda: shown(warehouse)["status"] == "completed", seconds=60)
    output = shown(warehouse)["output"]
    assert output["boxes"] == ["box from north", "box from south"]
    assert output["label"] == "label for 2 boxes of W-1"
    assert output["signed_by"] == "ada"

    refused = [line for line in warehouse.logged() if "not authorized" in line or "AccessDenied" in line]
    assert refused == []


def shown(warehouse: Deployment) -> dict[str, Any]:
    return warehouse.request("GET", "/runs/W-1")[1]


def expect(warehouse: Deployment, what: Callable[[], Any], *, seconds: float) -> None:
    if not until(what, seconds=seconds):
        pytest.fail(
            f"it did not come within {seconds} s: {shown(warehouse)}\n" + "\n".join(list(warehouse.logged())[-40:])
        )
