"""What the template must declare for the protocols to hold, and what linters and emulators do not check."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint

from durable.local.template import Template, referred

FUNCTION = "AWS::Lambda::Function"
MAPPING = "AWS::Lambda::EventSourceMapping"
QUEUE = "AWS::SQS::Queue"
TABLE = "AWS::DynamoDB::Table"


def test_the_template_as_written_is_clean(template_path: Path) -> None:
    assert [str(match) for match in lint(template_path.read_text())] == []


def test_the_template_as_deployed_is_clean(template: Template) -> None:
    assert [str(match) for match in lint(json.dumps(template.body))] == []


def test_no_function_of_the_circle_is_stopped_as_a_recursive_loop(template: Template) -> None:
    loops = {name: function.get("RecursiveLoop") for name, function in template.of_type(FUNCTION).items()}
    assert loops == {
        "ApiFunction": "Allow",
        "OrchestratorFunction": "Allow",
        "RemoteStepsFunction": "Allow",
        "EventsFunction": "Allow",
        "MaintenanceFunction": "Allow",
    }


def test_every_consumed_queue_has_a_dead_letter_queue_of_its_kind(template: Template) -> None:
    queues = template.of_type(QUEUE)
    for queue in consumed(template):
        redrive = queues[queue]["RedrivePolicy"]
        dead_letters = queues[referred(redrive["deadLetterTargetArn"])]
        assert dead_letters.get("FifoQueue", False) == queues[queue].get("FifoQueue", False)
        assert "RedrivePolicy" not in dead_letters
        assert redrive["maxReceiveCount"] >= 5


def test_a_dead_letter_outlives_its_stay_in_the_queue_it_came_from(template: Template) -> None:
    # A message keeps its age when it moves from one standard queue to another, so neither may be the shorter one.
    assert {queue["MessageRetentionPeriod"] for queue in template.of_type(QUEUE).values()} == {14 * 86400}


def test_runs_are_queued_in_order_per_run_at_high_throughput(template: Template) -> None:
    runs = template.of_type(QUEUE)["RunsQueue"]
    assert runs["FifoQueue"] is True
    assert runs["ContentBasedDeduplication"] is True
    assert runs["DeduplicationScope"] == "messageGroup"
    assert runs["FifoThroughputLimit"] == "perMessageGroupId"


def test_a_message_stays_hidden_longer_than_its_invocation_can_live(template: Template) -> None:
    visibility: dict[str, dict[str, int]] = template.body["Mappings"]["Visibility"]
    for parameter in ("OrchestratorTimeout", "RemoteStepsTimeout"):
        allowed: list[int] = template.body["Parameters"][parameter]["AllowedValues"]
        assert {int(timeout) for timeout in visibility} == set(allowed)
    assert all(row["Seconds"] >= int(timeout) + 30 for timeout, row in visibility.items())
    for source in template.of_type(MAPPING).values():
        timeout = template.of_type(FUNCTION)[referred(source["FunctionName"])]["Timeout"]
        queue = template.of_type(QUEUE)[referred(source["EventSourceArn"])]
        assert queue["VisibilityTimeout"] == {"Fn::FindInMap": ["Visibility", timeout, "Seconds"]}


def test_batches_are_taken_at_once_and_fail_message_by_message(template: Template) -> None:
    assert consumed(template) == {"RunsQueue", "TimersQueue", "StepsQueue"}
    for source in template.of_type(MAPPING).values():
        # A remote step has an invocation to itself.
        assert source["BatchSize"] == (1 if referred(source["EventSourceArn"]) == "StepsQueue" else 10)
        assert "MaximumBatchingWindowInSeconds" not in source
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_maintenance_runs_every_minute_and_one_failure_is_not_repeated(template: Template) -> None:
    rule = rule_for(template, "MaintenanceFunction")
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert invoked_by_events(template, "MaintenanceFunction")["MaximumRetryAttempts"] == 0


def test_an_event_that_is_not_handled_is_tried_again_and_then_kept(template: Template) -> None:
    kept = {"Fn::GetAtt": ["EventsDeadLetters", "Arn"]}
    (target,) = rule_for(template, "EventsFunction")["Targets"]
    assert target["RetryPolicy"] == {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86400}
    assert target["DeadLetterConfig"] == {"Arn": kept}
    assert invoked_by_events(template, "EventsFunction")["MaximumRetryAttempts"] == 2
    assert template.of_type(FUNCTION)["EventsFunction"]["DeadLetterConfig"] == {"TargetArn": kept}


def test_events_come_from_the_chosen_bus_and_sources_and_never_from_aws_by_default(template: Template) -> None:
    rule = rule_for(template, "EventsFunction")
    assert rule["EventBusName"] == {"Ref": "EventBus"}
    assert template.body["Parameters"]["EventBus"]["Default"] == "default"
    chosen = ["TakesAnySource", {"anything-but": {"prefix": "aws."}}, {"prefix": {"Ref": "EventSource"}}]
    assert rule["EventPattern"] == {"source": [{"Fn::If": chosen}]}
    assert template.body["Conditions"]["TakesAnySource"] == {"Fn::Equals": [{"Ref": "EventSource"}, ""]}


def test_the_secret_that_signs_tokens_is_made_by_aws_under_the_chosen_key(template: Template) -> None:
    (secret,) = template.of_type("AWS::SecretsManager::Secret").values()
    assert secret["GenerateSecretString"]["PasswordLength"] >= 43, "256 bits in letters and digits"
    assert "SecretString" not in secret
    # A name of our own would be taken for weeks after the stack has been deleted.
    assert "Name" not in secret
    assert secret["KmsKeyId"] == {"Fn::If": ["UsesOwnKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]}


def test_every_value_in_the_environment_is_text(template: Template) -> None:
    for function in template.of_type(FUNCTION).values():
        variables: dict[str, Any] = function["Environment"]["Variables"]
        assert {name for name, value in variables.items() if not isinstance(value, str | dict)} == set()
        assert variables["PYTHONHASHSEED"] == "0"


def test_the_table_has_the_keys_and_indexes_that_the_store_uses(template: Template) -> None:
    table = template.of_type(TABLE)["Table"]
    assert keys(table) == {"HASH": "pk", "RANGE": "sk"}
    indexes = {index["IndexName"]: index for index in table["GlobalSecondaryIndexes"]}
    assert {name: keys(index) for name, index in indexes.items()} == {
        "listing": {"HASH": "listing", "RANGE": "created"},
        "due": {"HASH": "due_shard", "RANGE": "due_at"},
        "attention": {"HASH": "attention", "RANGE": "created"},
    }
    assert {
        attribute["AttributeName"] for attribute in table["AttributeDefinitions"] if attribute["AttributeType"] == "N"
    } == {"due_at"}
    assert {name: index["Projection"].get("NonKeyAttributes") for name, index in indexes.items()} == {
        "listing": ["outcome", "tags", "attributes", "created_at"],
        "due": None,
        "attention": ["code_version"],
    }
    assert indexes["due"]["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_the_table_expires_items_recovers_to_a_point_in_time_and_survives_its_stack(template: Template) -> None:
    table = template.of_type(TABLE)["Table"]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert template.body["Resources"]["Table"]["DeletionPolicy"] == "Retain"


def test_the_api_is_closed_unless_a_parameter_opens_it(template: Template) -> None:
    assert template.body["Parameters"]["ApiAuth"]["Default"] == "AWS_IAM"
    routes = {route["RouteKey"]: route for route in template.of_type("AWS::ApiGatewayV2::Route").values()}
    assert routes["$default"]["AuthorizationType"] == {"Ref": "ApiAuth"}


def test_only_routes_with_a_token_in_their_path_are_open(template: Template) -> None:
    routes = template.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes if route["AuthorizationType"] == "NONE"} == {
        "GET /hooks/{token}",
        "POST /hooks/{token}",
        "POST /callbacks/{token}/{action}",
        "POST /tasks/{token}/{action}",
    }
    assert {referred(route["Target"]) for route in routes} == {"HttpIntegration"}


@pytest.mark.parametrize("queue", ["RunsDeadLetters", "TimersDeadLetters", "StepsDeadLetters", "EventsDeadLetters"])
def test_a_dead_letter_raises_an_alarm(template: Template, queue: str) -> None:
    watched = [alarm["Dimensions"][0]["Value"] for alarm in template.of_type("AWS::CloudWatch::Alarm").values()]
    assert {"Fn::GetAtt": [queue, "QueueName"]} in watched


def test_the_package_links_only_to_what_runs_in_lambda(template_path: Path) -> None:
    package = template_path.parent / "infra" / "package"
    assert {link.name: link.resolve().relative_to(template_path.parent).as_posix() for link in package.iterdir()} == {
        "durable": "durable",
        "handlers": "handlers",
        "examples": "examples",
        "requirements.txt": "requirements/runtime.txt",
    }


def test_a_queue_of_ones_own_as_the_page_shows_it_is_clean(template_path: Path) -> None:
    page = (template_path.parent / "docs" / "operations.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    source = template_path.read_text()
    variable = re.search(r"DURABLE_STEPS_QUEUES: .*", shown)
    assert variable is not None
    resources = shown.partition("Resources:\n")[2]
    mine = source.replace('DURABLE_STEPS_QUEUES: "{}"', variable[0]).replace(
        "Resources:\n", f"Resources:\n{resources}", 1
    )
    assert [str(match) for match in lint(mine)] == []


def rule_for(template: Template, function: str) -> dict[str, Any]:
    (rule,) = (
        rule
        for rule in template.of_type("AWS::Events::Rule").values()
        if function in {referred(target["Arn"]) for target in rule["Targets"]}
    )
    return rule


def invoked_by_events(template: Template, function: str) -> dict[str, Any]:
    (invocation,) = (
        invocation
        for invocation in template.of_type("AWS::Lambda::EventInvokeConfig").values()
        if referred(invocation["FunctionName"]) == function
    )
    return invocation


def consumed(template: Template) -> set[str]:
    return {referred(source["EventSourceArn"]) for source in template.of_type(MAPPING).values()}


def keys(schema: dict[str, Any]) -> dict[str, str]:
    return {key["KeyType"]: key["AttributeName"] for key in schema["KeySchema"]}
