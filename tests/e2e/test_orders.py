"""The orders example, deployed: over HTTP, under the roles of the template, through a crash and a long sleep."""

import contextlib
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.e2e.deployment import ROOT, Deployment, Say, until

# Recovery takes an orchestrator timeout and a sweep of maintenance, and the sleep more than a minute.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ORDER = json.loads((ROOT / "examples" / "orders" / "order.json").read_text())
APPROVAL = {"name": "approve", "body": {"approved": True, "by": "grace@example.com"}}


def test_the_emulator_holds_callers_to_their_permissions(deployment: Deployment) -> None:
    status, _ = deployment.request("POST", "/runs", started(order_id="E2E-0"), signed=False)
    assert status == 403
    with pytest.raises(ClientError, match="security token"):
        deployment.emulator.client("dynamodb", key="AKIANOBODYKNOWSTHIS1").list_tables()


def test_a_start_that_is_repeated_under_its_key_starts_once(deployment: Deployment) -> None:
    order = started(order_id="E2E-1", cooling_off_seconds=0)
    answers = [deployment.request("POST", "/runs", order, headers={"Idempotency-Key": "order-1"}) for _ in range(2)]
    assert {status // 100 for status, _ in answers} == {2}
    assert len({run["id"] for _, run in answers}) == 1


def test_an_order_survives_a_killed_orchestrator_and_sleeps_through_the_scheduler(
    deployment: Deployment, say: Say
) -> None:
    say("start an order whose orchestrator dies in the middle of the charge")
    status, run = deployment.request(
        "POST", "/runs", started(order_id="E2E-2", cooling_off_seconds=64, chaos="kill-once")
    )
    assert status // 100 == 2, run
    path = f"/runs/{run['id']}"
    expect(deployment, lambda: "Worker process died" in deployment.emulator.says(), seconds=30)

    say("killed; wait for another invocation to take over and go to sleep")
    expect(deployment, lambda: schedules_of(deployment, run["id"]), seconds=120)
    (alarm_clock,) = schedules_of(deployment, run["id"])

    say("asleep until a one-time schedule fires; wait for the question")
    expect(deployment, lambda: "approve" in "".join(shown(deployment, path)["waiting_for"]), seconds=120)
    assert alarm_clock not in schedules_of(deployment, run["id"])

    say("approve")
    status, answer = deployment.request("POST", f"{path}/messages", APPROVAL)
    assert status // 100 == 2, answer
    expect(deployment, lambda: shown(deployment, path)["status"] == "completed", seconds=30)
    receipt = shown(deployment, path)["output"]
    say(f"receipt: {receipt}")
    assert receipt["order_id"] == "E2E-2"
    assert receipt["outcome"] == "shipped"
    assert receipt["approved_by"] == "grace@example.com"
    assert receipt["payment"]["cents"] == 5500


def test_a_listing_shows_the_orders(deployment: Deployment) -> None:
    _, run = deployment.request("POST", "/runs", started(order_id="E2E-3"))
    # The index follows the table a moment later.
    expect(
        deployment,
        lambda: run["id"] in {row["id"] for row in deployment.request("GET", "/runs?workflow=fulfil")[1]["runs"]},
        seconds=10,
    )


def test_no_function_was_refused_what_it_needs(deployment: Deployment) -> None:
    expect(deployment, lambda: "Lambda e2e-maintenance: dispatched" in deployment.emulator.says(), seconds=90)
    said = [*deployment.emulator.says().splitlines(), *deployment.logged()]
    assert any("/aws/lambda/e2e-orchestrator" in line for line in said), "the logs of the functions are not found"
    assert [line for line in said if "not authorized" in line or "AccessDenied" in line] == []


def started(**changes: Any) -> dict[str, Any]:
    return {"workflow": "fulfil", "input": ORDER | changes}


def shown(deployment: Deployment, path: str) -> Any:
    status, run = deployment.request("GET", path)
    assert status == 200, run
    return run


def schedules_of(deployment: Deployment, run_id: str) -> list[str]:
    """The one-time schedules that will wake a run; one that fires meanwhile is gone."""
    scheduler = deployment.emulator.client("scheduler")
    group = deployment.outputs["ScheduleGroupName"]
    found: list[str] = []
    for schedule in scheduler.list_schedules(GroupName=group)["Schedules"]:
        with contextlib.suppress(scheduler.exceptions.ResourceNotFoundException):
            target = scheduler.get_schedule(GroupName=group, Name=schedule["Name"])["Target"]
            found += [schedule["Name"]] if run_id in target["Input"] else []
    return found


def expect(deployment: Deployment, happened: Any, *, seconds: float) -> None:
    assert until(happened, seconds=seconds), f"Not within {seconds} s.\n{deployment.emulator.says()[-6000:]}"
