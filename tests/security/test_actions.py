"""What each function asks of AWS while it does all that it can do, against what its role allows: nothing is missing, nothing unused."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from durable.local.template import Template, read_template, references
from tests.security.deployed import TEMPLATE, Asked, Deployed
from tests.security.story import tell

pytestmark = pytest.mark.moto

ROLES = {
    "ApiFunction": "ApiRole",
    "OrchestratorFunction": "OrchestratorRole",
    "RemoteStepsFunction": "RemoteStepsRole",
    "EventsFunction": "EventsRole",
    "MaintenanceFunction": "MaintenanceRole",
}
POLLED = {"OrchestratorRole": ("RunsQueue", "TimersQueue"), "RemoteStepsRole": ("StepsQueue",)}
POLLING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility")
"""What an event source does in the name of its function (Lambda developer guide, permissions for SQS)."""

NOT_SHOWN: dict[tuple[str, str, str], str] = {
    ("EventsRole", "sqs:SendMessage", "EventsDeadLetters"): "Lambda sends what the function has failed on",
    (
        "ApiRole",
        "dynamodb:ConditionCheckItem",
        "Table",
    ): "a retry that gives back more than 99 messages: two transactions",
    ("EventsRole", "s3:PutObject", "Bucket/*"): "an app's codec may make an event larger than a record may be",
}
"""Actions that a story cannot show, and who needs them."""


@pytest.fixture(scope="module")
def asked() -> Iterator[dict[str, set[Asked]]]:
    with mock_aws():
        place = Deployed("actions")
        tell(place)
        yield dict(place.asked)


@pytest.fixture(scope="module")
def allowed() -> dict[str, set[Asked]]:
    template = read_template(TEMPLATE, {}, region="eu-central-1")
    return {role: set(_granted(template, role)) for role in ROLES.values()}


@pytest.mark.parametrize("function", ROLES)
def test_sec_05_a_function_may_do_all_that_it_does(
    function: str, asked: dict[str, set[Asked]], allowed: dict[str, set[Asked]]
) -> None:
    needed = {one for one in asked[function] if one[1] != "a table of one's own"}
    assert needed - allowed[ROLES[function]] == set()


@pytest.mark.parametrize("function", ROLES)
def test_sec_05_a_function_may_do_nothing_else(
    function: str, asked: dict[str, set[Asked]], allowed: dict[str, set[Asked]]
) -> None:
    role = ROLES[function]
    polled = {(action, queue) for queue in POLLED.get(role, ()) for action in POLLING}
    explained = {(action, on) for owner, action, on in NOT_SHOWN if owner == role}
    logs = {one for one in allowed[role] if one[0].startswith("logs:")}
    assert allowed[role] - asked[function] - polled - logs - explained == set()


def test_every_explained_action_is_granted(allowed: dict[str, set[Asked]]) -> None:
    assert [why for (role, action, on), why in NOT_SHOWN.items() if (action, on) not in allowed[role]] == []


def _granted(template: Template, role: str) -> Iterator[Asked]:
    for policy in template.of_type("AWS::IAM::Role")[role]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            for action in _listed(statement["Action"]):
                for resource in _listed(statement["Resource"]):
                    yield action, _name_of(resource)


def _name_of(resource: Any) -> str:
    """The logical name, as `Deployed` has it: with the index of a table, or `/*` for the objects of a bucket."""
    named = sorted(references(resource) - {"AWS::Partition", "AWS::Region", "AWS::AccountId"})
    assert len(named) == 1, resource
    text: str = resource.get("Fn::Sub", "")
    if "/index/" in text:
        return f"{named[0]}/{text.rpartition('/')[2]}"
    return f"{named[0]}/*" if text.endswith("${Bucket.Arn}/*") else named[0]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
