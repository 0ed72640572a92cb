"""The orders example, deployed, while AWS fails on the wire: every order gets the same receipt."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.conftest import FAST
from tests.e2e.deployment import ROOT, Deployment, Sam, Say, running_emulator, until
from tests.e2e.proxy import Proxy, lead_through, running_proxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ORDER = json.loads((ROOT / "examples" / "orders" / "order.json").read_text()) | {"cooling_off_seconds": 1}
APPROVAL = {"name": "approve", "body": {"approved": True, "by": "grace@example.com"}}

ORDERS = 4
"""At the same time."""

WRITES = {
    "dynamodb": ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"),
    "sqs": ("SendMessage",),
    "scheduler": ("CreateSchedule",),
}

THROTTLED = [
    {
        "service": "dynamodb",
        "sequence": {"fail": 1, "pass": 4},
        "error": {"code": "ProvisionedThroughputExceededException"},
    },
    # With this status botocore tries again. Without, a start whose send is refused waits for maintenance.
    {"service": "sqs", "sequence": {"fail": 1, "pass": 4}, "error": {"code": "RequestThrottled", "status": 503}},
]
"""One request in five is refused."""

CUT = [
    {"service": service, "operation": operation, "sequence": {"fail": 1, "pass": 1}, "response": {"abort_bytes": 0}}
    for service, operations in WRITES.items()
    for operation in operations
]
"""Every write is performed, and its reply cut off; the next try goes through."""

RESET = [
    # Three are as many as botocore tries: the call is given up, and the turn with it.
    {"service": "dynamodb", "sequence": {"fail": 3, "pass": 12}, "reset": True},
    {"service": "sqs", "sequence": {"fail": 1, "pass": 4}, "reset": True},
]
"""Connections are reset before the request arrives."""


@pytest.fixture(scope="module")
def broken_line(sam: Sam, tmp_path_factory: pytest.TempPathFactory, say: Say) -> Iterator[tuple[Deployment, Proxy]]:
    """An emulator of its own: signatures name the host that was called, which is the proxy."""
    folder = tmp_path_factory.mktemp("faults")
    with running_emulator(folder, auth=False) as emulator, running_proxy(emulator, folder) as proxy:
        say("sam deploy, with a proxy between the functions and the emulator")
        deployment = sam.at(emulator).deploy("faults", FAST)
        lead_through(deployment, proxy)
        yield deployment, proxy


@pytest.mark.parametrize("rules", [THROTTLED, CUT, RESET], ids=["throttled", "cut", "reset"])
def test_orders_get_the_same_receipt_whatever_the_line_does(
    broken_line: tuple[Deployment, Proxy], rules: list[dict[str, Any]], say: Say, request: pytest.FixtureRequest
) -> None:
    deployment, proxy = broken_line
    run_ids = [f"{request.node.callspec.id}-{number}" for number in range(ORDERS)]
    before = proxy.seen()
    proxy.let(*rules)
    try:
        receipts = shipped(deployment, run_ids)
        happened = proxy.happened()
    finally:
        proxy.let()
    say(f"{happened.total()} of {proxy.seen() - before} requests went wrong: {dict(happened)}")
    assert happened.keys() >= {"UpdateItem", "PutItem", "SendMessage"}
    for run_id, receipt in zip(run_ids, receipts, strict=True):
        assert receipt["payment"].pop("payment_id").startswith("pay-")
        assert receipt["parcel"].pop("tracking").startswith("parcel-")
        assert receipt == {
            "order_id": run_id, "outcome": "shipped", "payment": {"cents": 5500}, "parcel": {},
            "approved_by": "grace@example.com",
        }  # fmt: skip
        assert recorded(deployment, run_id) == ["charge", "cooling-off", "approve", "ship"]


def shipped(deployment: Deployment, run_ids: list[str]) -> list[Any]:
    for run_id in run_ids:
        started = {"workflow": "fulfil", "input": ORDER | {"order_id": run_id}, "id": run_id}
        insist(deployment, "POST", "/runs", started)
    for run_id in run_ids:
        path = f"/runs/{run_id}"
        expect(deployment, path, lambda run: "approve" in str(run["waiting_for"]))
        insist(deployment, "POST", f"{path}/messages", APPROVAL | {"id": f"approval-of-{run_id}"})
    for run_id in run_ids:
        expect(deployment, f"/runs/{run_id}", lambda run: run["status"] == "completed")
    return [insist(deployment, "GET", f"/runs/{run_id}")["output"] for run_id in run_ids]


def insist(deployment: Deployment, method: str, path: str, body: Any = None) -> Any:
    """What every client does with a 503: ask again."""
    answers: list[Any] = []

    def accepted() -> bool:
        answers.append(deployment.request(method, path, body))
        return answers[-1][0] != 503

    assert until(accepted, seconds=30), answers
    status, answer = answers[-1]
    assert status // 100 == 2, answers
    return answer


def recorded(deployment: Deployment, run_id: str) -> list[str]:
    """The results in the history, in order of record."""
    entries = insist(deployment, "GET", f"/runs/{run_id}/history")["entries"]
    return [entry["location"] for entry in entries if not entry.get("mark")]


def expect(deployment: Deployment, path: str, happened: Callable[[Any], bool]) -> None:
    if not until(lambda: happened(insist(deployment, "GET", path)), seconds=150):
        run, said = insist(deployment, "GET", path), "\n".join(list(deployment.logged())[-60:])
        pytest.fail(f"it did not come in time: {run}\n{said}")
