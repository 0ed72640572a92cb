"""Each role may do what its function does, on the resources of this stack and no others."""

from collections.abc import Iterator
from typing import Any

import pytest

from durable.local.template import Template, references, referred

ROLE = "AWS::IAM::Role"
NAMED_ONLY_WHEN_USED = ("schedule/${ScheduleGroup}/*", "${Bucket.Arn}/*")
"""Resources whose names are not known before; their wildcard stands behind the name of a group or bucket of this stack."""


def test_no_statement_has_a_wildcard_action(template: Template) -> None:
    assert [
        action for _, statement in statements(template) for action in listed(statement["Action"]) if "*" in action
    ] == []


def test_no_statement_reaches_beyond_this_stack(template: Template) -> None:
    own = set(template.body["Resources"]) | {"KmsKeyArn"}
    for owner, statement in statements(template):
        for resource in listed(statement["Resource"]):
            assert references(resource) & own, f"{owner}: {resource} names nothing of this stack"
            text = resource.get("Fn::Sub", "")
            assert "*" not in text or text.endswith(NAMED_ONLY_WHEN_USED), f"{owner}: {resource}"


def test_no_role_takes_a_managed_policy(template: Template) -> None:
    # AWS's managed policies for Lambda and SQS allow their actions on everything.
    assert [name for name, role in template.of_type(ROLE).items() if "ManagedPolicyArns" in role] == []


def test_every_function_has_a_role_of_its_own(template: Template) -> None:
    functions = template.of_type("AWS::Lambda::Function")
    roles = {name: referred(function["Role"]) for name, function in functions.items()}
    assert len(set(roles.values())) == len(functions)


def test_the_scheduler_may_only_send_to_the_queue_of_runs(template: Template) -> None:
    granted = [statement for owner, statement in statements(template) if owner == "ScheduleRole"]
    assert granted == [
        {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": {"Fn::GetAtt": ["RunsQueue", "Arn"]}},
    ]


def test_only_schedules_of_this_stack_may_take_the_schedulers_role(template: Template) -> None:
    (trust,) = template.of_type(ROLE)["ScheduleRole"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"]["StringEquals"]["aws:SourceArn"] == {"Fn::GetAtt": ["ScheduleGroup", "Arn"]}


def test_only_the_schedulers_role_may_be_passed_and_only_to_the_scheduler(template: Template) -> None:
    passing = [
        (owner, statement) for owner, statement in statements(template) if "iam:PassRole" in listed(statement["Action"])
    ]
    assert passing == [
        (
            "OrchestratorRole",
            {
                "Effect": "Allow",
                "Action": "iam:PassRole",
                "Resource": {"Fn::GetAtt": ["ScheduleRole", "Arn"]},
                "Condition": {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
            },
        )
    ]


@pytest.mark.parametrize(
    ("role", "index", "may"),
    [
        ("ApiRole", "listing", True),
        ("ApiRole", "attention", True),
        ("ApiRole", "due", False),
        ("MaintenanceRole", "due", True),
        ("MaintenanceRole", "attention", True),
        ("MaintenanceRole", "listing", False),
        ("OrchestratorRole", "due", False),
        ("RemoteStepsRole", "due", False),
        ("EventsRole", "listing", False),
    ],
)
def test_a_role_may_query_the_indexes_that_its_function_reads(
    template: Template, role: str, index: str, may: bool
) -> None:
    queried = [
        resource
        for owner, statement in statements(template)
        if owner == role and "dynamodb:Query" in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    ]
    assert ({"Fn::Sub": f"${{Table.Arn}}/index/{index}"} in queried) is may


@pytest.mark.parametrize(
    ("role", "queues"),
    [
        ("ApiRole", {"StepsQueue"}),  # for workers that claim steps through it
        ("OrchestratorRole", {"RunsQueue", "TimersQueue"}),
        ("RemoteStepsRole", {"StepsQueue"}),
        ("EventsRole", set[str]()),
        ("MaintenanceRole", set[str]()),
    ],
)
def test_a_role_takes_messages_from_the_queues_of_its_function_only(
    template: Template, role: str, queues: set[str]
) -> None:
    assert reached(template, role, "sqs:ReceiveMessage") == queues
    assert reached(template, role, "sqs:DeleteMessage") == queues


@pytest.mark.parametrize(
    ("role", "queues"),
    [
        ("ApiRole", {"RunsQueue", "TimersQueue", "StepsQueue"}),
        ("OrchestratorRole", {"RunsQueue", "TimersQueue", "StepsQueue"}),
        ("RemoteStepsRole", {"RunsQueue", "TimersQueue", "StepsQueue"}),
        ("EventsRole", {"TimersQueue", "EventsDeadLetters"}),
        ("MaintenanceRole", {"TimersQueue"}),
        ("ScheduleRole", {"RunsQueue"}),
    ],
)
def test_a_role_sends_to_the_queues_that_its_function_sends_to(template: Template, role: str, queues: set[str]) -> None:
    assert reached(template, role, "sqs:SendMessage") == queues


def test_only_who_makes_or_checks_tokens_reads_the_secret(template: Template) -> None:
    readers = {
        owner for owner, statement in statements(template) if "secretsmanager:" in str(listed(statement["Action"]))
    }
    assert readers == {"ApiRole", "OrchestratorRole"}
    assert all(reached(template, role, "secretsmanager:GetSecretValue") == {"TokenSecret"} for role in readers)


def test_maintenance_can_delete_and_create_nothing(template: Template) -> None:
    actions = {
        action
        for owner, statement in statements(template)
        if owner == "MaintenanceRole"
        for action in listed(statement["Action"])
    }
    assert not {action for action in actions if "Put" in action and not action.startswith("logs:")}
    assert {action for action in actions if action.startswith("s3:")} == {"s3:DeleteObject", "s3:ListBucket"}


def test_only_the_rule_may_put_events_among_the_dead_letters_from_outside(template: Template) -> None:
    (policy,) = template.of_type("AWS::SQS::QueuePolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert [referred(queue) for queue in policy["Queues"]] == [referred(statement["Resource"])] == ["EventsDeadLetters"]
    assert (statement["Principal"], statement["Action"]) == ({"Service": "events.amazonaws.com"}, "sqs:SendMessage")
    (rule,) = (name for name, rule in template.of_type("AWS::Events::Rule").items() if "EventPattern" in rule)
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": [rule, "Arn"]}}}


def test_every_role_may_use_the_key(template: Template) -> None:
    (policy,) = template.of_type("AWS::IAM::Policy").values()
    assert {referred(role) for role in policy["Roles"]} == set(template.of_type(ROLE))


def reached(template: Template, role: str, action: str) -> set[str]:
    """The resources on which a role may do this."""
    return {
        referred(resource)
        for owner, statement in statements(template)
        if owner == role and action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every statement of every policy, with the role or policy that holds it."""
    for name, role in template.of_type(ROLE).items():
        for policy in role.get("Policies", []):
            yield from ((name, statement) for statement in policy["PolicyDocument"]["Statement"])
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for name, policy in template.of_type(kind).items():
            yield from ((name, statement) for statement in policy["PolicyDocument"]["Statement"])


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
