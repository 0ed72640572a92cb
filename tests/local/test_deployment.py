"""The real template and handlers on the local stack, driven as a user would."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from durable.adapters.clock import SystemClock
from durable.cli.api import Api, run_path
from durable.local.sources import Notice
from durable.local.stack import LocalStack, StackOptions
from examples.orders.app import Order

ROOT = Path(__file__).parents[2]
ORDER = {
    "order_id": "A-1",
    "customer": "ada@example.com",
    "items": [{"sku": "cup", "cents": 650}],
    "cooling_off_seconds": 2,
}
APPROVAL = {"name": "approve", "body": {"approved": True, "by": "grace"}}

pytestmark = pytest.mark.moto


@pytest.fixture(scope="module")
def notices() -> list[Notice]:
    return []


@pytest.fixture(scope="module")
def api(notices: list[Notice]) -> Iterator[Api]:
    options = StackOptions(port=0, template=ROOT / "template.yaml")
    with LocalStack(options, report=notices.append) as stack:
        yield Api(stack.url)


def eventually(what: Callable[[], Any], seconds: float = 40) -> Any:
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while not (found := what()):
        assert clock.monotonic() < end, "it never came"
        clock.sleep(0.1)
    return found


def completed(api: Api, run_id: str) -> Any:
    return eventually(lambda: run if (run := api.get(run_path(run_id)))["status"] == "completed" else None)


def test_an_order_goes_its_way_from_start_to_receipt(api: Api, notices: list[Notice]):
    api.post("/runs", {"workflow": "fulfil", "id": "order-1", "input": ORDER})
    api.post(run_path("order-1", "messages"), APPROVAL)
    assert completed(api, "order-1")["output"]["outcome"] == "shipped"
    entries = api.get(run_path("order-1", "history"))["entries"]
    assert [entry["location"] for entry in entries] == ["charge", "cooling-off", "approve", "ship"]
    assert not notices


def test_many_runs_proceed_side_by_side(api: Api):
    ids = [f"many-{i}" for i in range(12)]
    for run_id in ids:
        api.post("/runs", {"workflow": "fulfil", "id": run_id, "input": {**ORDER, "cooling_off_seconds": 0}})
        api.post(run_path(run_id, "messages"), APPROVAL)
    assert {completed(api, run_id)["output"]["outcome"] for run_id in ids} == {"shipped"}


@pytest.mark.slow
def test_the_demo_shows_a_death_and_a_receipt():
    demo = subprocess.run(
        [sys.executable, "-m", "examples.orders.demo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "died" in demo.stdout
    assert "shipped" in demo.stdout


def test_the_stack_in_the_foreground_ends_in_order_at_ctrl_c():
    program = [sys.executable, "-m", "durable.cli", "dev", "--port", "0"]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as dev:
        assert dev.stdout is not None
        seen = ""
        while "runs at http://127.0.0.1:" not in seen:
            line = dev.stdout.readline()
            assert line, seen
            seen += line
        os.kill(dev.pid, signal.SIGINT)
        rest = dev.stdout.read()
    assert dev.returncode == 0
    assert "stopping" in rest
    assert "Traceback" not in seen + rest


def test_the_order_of_the_example_is_one_that_the_example_takes():
    Order.model_validate(json.loads((ROOT / "examples/orders/order.json").read_text()))
