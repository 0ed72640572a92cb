"""A shipment over HTTP on the provisioned stack: a step in place, two children, a remote step, an event from a bus."""

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from durable.adapters.clock import SystemClock
from durable.local.provision import REGION
from durable.local.stack import LocalStack, StackOptions

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.moto, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    options = StackOptions(app="examples.warehouse.app:app", port=0, template=ROOT / "template.yaml")
    with LocalStack(options) as stack:
        yield stack


def ask(stack: LocalStack, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(stack.url).netloc, timeout=30)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or "null")
    finally:
        connection.close()


def eventually(what: Callable[[], Any]) -> Any:
    clock = SystemClock()
    end = clock.monotonic() + 60
    while not (found := what()):
        assert clock.monotonic() < end, "it never came"
        clock.sleep(0.1)
    return found


def started(stack: LocalStack, order_id: str) -> str:
    shipment = {"order_id": order_id, "cents": 900, "halls": ["north", "south"]}
    status, run = ask(stack, "POST", "/runs", {"workflow": "ship", "input": shipment, "id": order_id})
    assert status in (200, 201, 202), run
    eventually(lambda: "event" in str(ask(stack, "GET", f"/runs/{order_id}")[1].get("waiting_for")))
    return order_id


def finished(stack: LocalStack, run_id: str) -> Any:
    run = eventually(lambda: (run := ask(stack, "GET", f"/runs/{run_id}")[1])["status"] == "completed" and run)
    return run["output"]


def test_an_event_over_http_ends_the_wait(stack: LocalStack) -> None:
    run_id = started(stack, "W-1")
    status, _ = ask(stack, "POST", "/events/carrier.delivered", {"order_id": "W-1", "signed_by": "ada"})
    assert status in (200, 202)
    output = finished(stack, run_id)
    assert output["label"] == "label for 2 boxes of W-1"
    assert output["boxes"] == ["box from north", "box from south"]
    assert output["signed_by"] == "ada"
    children = [row["id"] for row in ask(stack, "GET", "/runs?workflow=pick")[1]["runs"]]
    assert len(children) == 2


def test_an_event_on_the_bus_ends_the_wait(stack: LocalStack) -> None:
    run_id = started(stack, "W-2")
    events = boto3.client(
        "events", endpoint_url=stack.endpoint, region_name=REGION, aws_access_key_id="local",
        aws_secret_access_key="local",
    )  # fmt: skip
    detail = json.dumps({"order_id": "W-2", "signed_by": "grace"})
    events.put_events(Entries=[{"Source": "carrier", "DetailType": "carrier.delivered", "Detail": detail}])
    assert finished(stack, run_id)["signed_by"] == "grace"
