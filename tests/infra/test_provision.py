"""The local emulator holds what the template declares, and a runner learns how to drive its functions."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from durable.local.provision import HttpSource, Provisioned, QueueSource, RateSource, RuleSource, provision
from durable.local.template import Template, references

pytestmark = pytest.mark.moto


@pytest.fixture(scope="module")
def emulator() -> Iterator[None]:
    with mock_aws():
        yield


Provision = Callable[..., Provisioned]


@pytest.fixture(scope="module")
def another(emulator: None, template_path: Path) -> Provision:
    """One more stack of the template, under a name of its own."""
    numbers = itertools.count(1)
    return lambda **options: provision(template_path, stack=f"another-{next(numbers)}", **options)


@pytest.fixture(scope="module")
def stack(emulator: None, template_path: Path) -> Provisioned:
    return provision(template_path, {"OrchestratorTimeout": "60", "TimersThreshold": "5"}, stack="shop")


def test_the_queues_behave_as_the_template_says(stack: Provisioned) -> None:
    runs = attributes(stack, stack.runs_queue_url)
    assert stack.runs_queue_url.endswith("/shop-runs.fifo")
    assert runs["VisibilityTimeout"] == "90"
    assert runs["ContentBasedDeduplication"] == "true"
    assert json.loads(runs["RedrivePolicy"])["deadLetterTargetArn"].endswith(":shop-runs-dlq.fifo")
    timers = attributes(stack, stack.timers_queue_url)
    assert timers["VisibilityTimeout"] == "90"
    assert json.loads(timers["RedrivePolicy"])["deadLetterTargetArn"].endswith(":shop-timers-dlq")


def test_the_table_has_its_indexes_and_expires_items(stack: Provisioned) -> None:
    dynamodb = boto3.client("dynamodb", region_name=stack.region)
    table = dynamodb.describe_table(TableName=stack.table)["Table"]
    assert {index.get("IndexName") for index in table.get("GlobalSecondaryIndexes", [])} == {
        "listing",
        "due",
        "attention",
    }
    expiry = dynamodb.describe_time_to_live(TableName=stack.table)["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}


def test_the_schedule_group_stands(stack: Provisioned) -> None:
    scheduler = boto3.client("scheduler", region_name=stack.region)
    assert stack.schedule_groups == ("shop-timers",)
    assert scheduler.get_schedule_group(Name="shop-timers")["State"] == "ACTIVE"


def test_a_function_is_promised_its_handler_its_time_and_its_surroundings(stack: Provisioned) -> None:
    orchestrator = stack.functions["OrchestratorFunction"]
    assert (orchestrator.handler, orchestrator.timeout, orchestrator.memory) == (
        "handlers.orchestrator.handler",
        60,
        512,
    )
    assert orchestrator.environment == {
        "PYTHONHASHSEED": "0",
        "PYDANTIC_DISABLE_PLUGINS": "1",
        "DURABLE_APP": "examples.orders.app:app",
        "DURABLE_CODE_VERSION": "",
        "DURABLE_TABLE": stack.table,
        "DURABLE_BUCKET": stack.outputs["BucketName"],
        "DURABLE_RUNS_QUEUE_URL": stack.runs_queue_url,
        "DURABLE_RUNS_QUEUE_ARN": attributes(stack, stack.runs_queue_url)["QueueArn"],
        "DURABLE_TIMERS_QUEUE_URL": stack.timers_queue_url,
        "DURABLE_STEPS_QUEUE_URL": stack.outputs["StepsQueueUrl"],
        "DURABLE_STEPS_QUEUES": "{}",
        "DURABLE_TOKEN_SECRET_ARN": secret_of(stack)["ARN"],
        "DURABLE_PUBLIC_URL": "http://127.0.0.1:8321",
        "DURABLE_SCHEDULE_GROUP": "shop-timers",
        "DURABLE_SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/shop-ScheduleRole",
        "DURABLE_TIMERS_THRESHOLD": "5",
        "POWERTOOLS_SERVICE_NAME": "shop",
        "POWERTOOLS_LOG_LEVEL": "INFO",
    }


def test_the_event_sources_are_those_of_the_template(stack: Provisioned) -> None:
    def queue(url: str, *, fifo: bool = False, function: str = "OrchestratorFunction", batch: int = 10) -> QueueSource:
        return QueueSource(
            function=function,
            queue_url=url,
            queue_arn=attributes(stack, url)["QueueArn"],
            fifo=fifo,
            batch_size=batch,
            window=0,
            partial_failures=True,
        )

    events = events_of(stack)
    assert events.function == "EventsFunction"
    assert stack.sources == (
        queue(stack.runs_queue_url, fifo=True),
        queue(stack.timers_queue_url),
        queue(stack.outputs["StepsQueueUrl"], function="RemoteStepsFunction", batch=1),
        events,
        RateSource(function="MaintenanceFunction", every=60),
        HttpSource(function="ApiFunction", route="$default", authorization="AWS_IAM"),
        HttpSource(function="ApiFunction", route="POST /hooks/{token}", authorization="NONE"),
        HttpSource(function="ApiFunction", route="GET /hooks/{token}", authorization="NONE"),
        HttpSource(function="ApiFunction", route="POST /callbacks/{token}/{action}", authorization="NONE"),
        HttpSource(function="ApiFunction", route="POST /tasks/{token}/{action}", authorization="NONE"),
    )


def test_remote_steps_have_the_time_that_is_chosen_and_their_queue_waits_for_it(another: Provision) -> None:
    stack = another(parameters={"RemoteStepsTimeout": "900"})
    assert stack.functions["RemoteStepsFunction"].timeout == 900
    assert attributes(stack, stack.outputs["StepsQueueUrl"])["VisibilityTimeout"] == "930"


def test_the_secret_is_generated_and_no_two_stacks_share_it(stack: Provisioned, another: Provision) -> None:
    first, second = (secret_of(each)["SecretString"] for each in (stack, another()))
    assert len(first) == len(second) == 64
    assert first != second


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({"api_url": "http://127.0.0.1:7"}, "http://127.0.0.1:7"),
        ({"parameters": {"PublicUrl": "https://shop.test"}}, "https://shop.test"),
    ],
)
def test_links_lead_to_where_the_runner_answers_or_to_an_address_that_is_chosen(
    another: Provision, options: dict[str, Any], url: str
) -> None:
    assert another(**options).functions["ApiFunction"].environment["DURABLE_PUBLIC_URL"] == url


@pytest.mark.parametrize(
    ("chosen", "source", "taken"),
    [
        ({}, "shop.orders", True),
        ({}, "aws.s3", False),
        ({"EventSource": "shop."}, "shop.orders", True),
        ({"EventSource": "shop."}, "bank", False),
        ({"EventSource": "aws.s3"}, "aws.s3", True),
    ],
)
def test_an_event_of_a_source_that_is_taken_waits_for_its_function(
    another: Provision, chosen: dict[str, str], source: str, taken: bool
) -> None:
    stack = another(parameters=chosen)
    put(stack, source=source)
    assert waiting_events(stack) == int(taken)


def test_the_bus_that_is_chosen_is_there_and_is_the_one_that_is_listened_to(another: Provision) -> None:
    by_name = another(parameters={"EventBus": "shop"})
    by_arn = another(parameters={"EventBus": "arn:aws:events:us-east-1:123456789012:event-bus/shop"})
    put(by_name, bus="default")
    assert (waiting_events(by_name), waiting_events(by_arn)) == (0, 0)
    put(by_name, bus="shop")
    assert (waiting_events(by_name), waiting_events(by_arn)) == (1, 1)


def test_an_event_that_fails_three_times_is_among_the_dead_letters(stack: Provisioned) -> None:
    of_queue = attributes(stack, events_of(stack).queue_url)
    redrive = json.loads(of_queue["RedrivePolicy"])
    assert redrive["maxReceiveCount"] == 3
    assert redrive["deadLetterTargetArn"].endswith(":shop-events-dlq")
    assert int(of_queue["VisibilityTimeout"]) == stack.functions["EventsFunction"].timeout


def test_outputs_that_need_a_real_deployment_are_left_out(stack: Provisioned) -> None:
    assert "ApiUrl" not in stack.outputs
    assert stack.outputs["TableName"] == stack.table


def test_two_stacks_stand_side_by_side(stack: Provisioned, template_path: Path) -> None:
    other = provision(template_path, stack="other")
    assert other.table != stack.table
    assert other.runs_queue_url != stack.runs_queue_url


def test_a_schedule_that_is_no_rate_is_refused_with_its_name(
    emulator: None, template_path: Path, tmp_path: Path
) -> None:
    nightly = tmp_path / "template.yaml"
    nightly.write_text(template_path.read_text().replace("rate(1 minute)", "cron(0 3 * * ? *)"))
    with pytest.raises(ValueError, match=r"EveryMinute runs at 'cron\(0 3"):
        provision(nightly, stack="nightly")


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ({"Ref": "Table"}, {"Table"}),
        ({"Fn::GetAtt": ["RunsQueue", "Arn"]}, {"RunsQueue"}),
        ({"Fn::Sub": "${Table.Arn}/index/due"}, {"Table"}),
        ({"Fn::Join": ["/", ["integrations", {"Ref": "HttpIntegration"}]]}, {"HttpIntegration"}),
        ("literal", set()),
    ],
)
def test_references_are_found_in_every_kind_of_expression(expression: Any, names: set[str]) -> None:
    assert references(expression) == names


def test_a_value_that_only_aws_has_is_refused_with_its_name() -> None:
    template = Template({"Parameters": {}, "Resources": {"Hook": {"Type": "AWS::Lambda::Url", "Properties": {}}}})
    with pytest.raises(ValueError, match="FunctionUrl of Hook"):
        template.created_locally({"Question": {"Fn::GetAtt": ["Hook", "FunctionUrl"]}})


def put(stack: Provisioned, *, source: str = "shop", bus: str = "default") -> None:
    entry: Any = {"Source": source, "DetailType": "OrderPlaced", "Detail": '{"n": 1}', "EventBusName": bus}
    boto3.client("events", region_name=stack.region).put_events(Entries=[entry])


def events_of(stack: Provisioned) -> RuleSource:
    (source,) = (source for source in stack.sources if isinstance(source, RuleSource))
    return source


def waiting_events(stack: Provisioned) -> int:
    return int(attributes(stack, events_of(stack).queue_url)["ApproximateNumberOfMessages"])


def secret_of(stack: Provisioned) -> Any:
    client: Any = boto3.client("secretsmanager", region_name=stack.region)
    return client.get_secret_value(SecretId=stack.functions["ApiFunction"].environment["DURABLE_TOKEN_SECRET_ARN"])


def attributes(stack: Provisioned, queue_url: str) -> dict[Any, str]:
    sqs = boto3.client("sqs", region_name=stack.region)
    return sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])["Attributes"]
