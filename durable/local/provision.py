"""Creates in the local emulator what template.yaml declares, and tells how its functions are to be driven."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import boto3

from durable.local.rules import RULE, LocalTarget, arn_of, local_targets
from durable.local.template import Expression, StandIns, Template, read_template, referred

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_events import EventBridgeClient
    from types_boto3_scheduler import EventBridgeSchedulerClient

REGION: Final = "us-east-1"
API_URL: Final = "http://127.0.0.1:8321"  # of `durable dev`
_DECLARED: Final = {
    "AWS::Lambda::Function": ("Handler", "Timeout", "MemorySize"),
    "AWS::Lambda::EventSourceMapping": ("EventSourceArn", "BatchSize", "MaximumBatchingWindowInSeconds"),
    RULE: ("ScheduleExpression",),
    "AWS::ApiGatewayV2::Route": ("RouteKey", "AuthorizationType"),
    "AWS::Scheduler::ScheduleGroup": ("Name",),
}
_RATE: Final = re.compile(r"rate\((\d+) (second|minute|hour|day)s?\)")
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True, slots=True)
class Function:
    """A Lambda function of the template: its entry point and the surroundings it is promised."""

    name: str
    """Its logical id in the template."""
    handler: str
    """`package.module.attribute`."""
    environment: Mapping[str, str]
    timeout: int
    """Seconds an invocation may take."""
    memory: int
    """Megabytes."""


@dataclass(frozen=True, slots=True)
class QueueSource:
    """A queue whose messages a function is invoked with, in batches."""

    function: str
    queue_url: str
    queue_arn: str
    fifo: bool
    batch_size: int
    window: int
    """Seconds the poller waits for a batch to fill."""
    partial_failures: bool
    """Whether the function names the messages it could not handle; otherwise a batch fails as one."""


@dataclass(frozen=True, slots=True)
class RuleSource:
    """A function that is invoked with each event that a rule picks from a bus: locally the rule queues them for it."""

    function: str
    queue_url: str
    queue_arn: str


@dataclass(frozen=True, slots=True)
class RateSource:
    """A function that is invoked every so many seconds."""

    function: str
    every: int


@dataclass(frozen=True, slots=True)
class HttpSource:
    """A function that answers the HTTP requests of a route, as events of payload format 2.0."""

    function: str
    route: str
    authorization: str
    """`AWS_IAM`, `JWT` or `NONE`."""


EventSource: TypeAlias = QueueSource | RuleSource | RateSource | HttpSource


@dataclass(frozen=True, slots=True)
class Provisioned:
    """A stack that stands in the emulator."""

    stack: str
    region: str
    outputs: Mapping[str, str]
    functions: Mapping[str, Function]
    """By logical id."""
    sources: tuple[EventSource, ...]
    schedule_groups: tuple[str, ...]

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.outputs["TableName"]

    @property
    def runs_queue_url(self) -> str:
        """Where messages and wakes of runs go."""
        return self.outputs["RunsQueueUrl"]

    @property
    def timers_queue_url(self) -> str:
        """Where delayed wakes go."""
        return self.outputs["TimersQueueUrl"]


def provision(
    template_path: Path,
    parameters: Mapping[str, str] | None = None,
    *,
    endpoint: str | None = None,
    stack: str = "durable",
    region: str = REGION,
    api_url: str = API_URL,
) -> Provisioned:
    """Create what the template keeps things in, and return what a runner of its functions needs.

    Functions, roles, logs, alarms and the HTTP API are not created: the runner stands in for them.

    Args:
        template_path: The SAM template.
        parameters: Values of its parameters; the template's defaults hold for the others.
        endpoint: Address of a moto server; None inside `moto.mock_aws()`. Real credentials are never used.
        stack: Name of the stack, which prefixes the names of queues and groups.
        region: Region to create everything in.
        api_url: Where the runner will answer for the HTTP API.

    Raises:
        RuntimeError: the emulator could not create the stack.
        ValueError: the template uses something that has no local counterpart yet.
    """
    given = dict(parameters or {})
    template = read_template(template_path, given, region=region)
    emulator = _Emulator(endpoint, region)
    _create_buses(emulator, template, given)
    stand_ins = {
        **_create_secrets(emulator, stack, template),
        **{(name, "ApiEndpoint"): api_url for name in template.of_type("AWS::ApiGatewayV2::Api")},
    }
    evaluated = _create_stack(emulator, stack, template, given, stand_ins)
    groups = tuple(evaluated(group["Name"]) for group in template.of_type("AWS::Scheduler::ScheduleGroup").values())
    _create_schedule_groups(emulator, groups)
    _expire_items(emulator, template, evaluated)
    return Provisioned(
        stack=stack,
        region=region,
        outputs=evaluated.outputs,
        functions={function.name: function for function in _functions(template, evaluated)},
        sources=(
            *_queue_sources(template, evaluated),
            *_rule_sources(template, evaluated),
            *_rate_sources(template, evaluated),
            *_http_sources(template, evaluated),
        ),
        schedule_groups=groups,
    )


class _Emulator:
    """Makes clients that cannot reach a real account, whatever this machine is logged in to."""

    def __init__(self, endpoint: str | None, region: str) -> None:
        self._endpoint = endpoint
        self._session: Any = boto3.Session(
            aws_access_key_id="local",
            aws_secret_access_key="local",  # noqa: S106 - made up
            region_name=region,
        )

    def client(self, service: str) -> Any:
        return self._session.client(service, endpoint_url=self._endpoint)


class _Evaluated:
    """What the functions of a template, such as `Ref`, came to in the stack."""

    def __init__(self, outputs: Mapping[str, str], answers: Mapping[str, str]) -> None:
        self.outputs = outputs
        self._answers = answers

    def __call__(self, expression: Expression) -> str:
        return self._answers[_key(expression)] if isinstance(expression, dict) else str(expression)


def _create_buses(emulator: _Emulator, template: Template, parameters: Mapping[str, str]) -> None:
    """Create the buses that the template expects to be there; the default one always is."""
    events: EventBridgeClient = emulator.client("events")
    declared: Mapping[str, Any] = template.body["Parameters"]
    for rule in template.of_type(RULE).values():
        match rule.get("EventBusName", "default"):
            case {"Ref": str(name)} if name in declared:
                bus = parameters.get(name, declared[name].get("Default", ""))
            case {}:  # one that the template itself creates
                continue
            case bus:
                pass
        if (name := bus.rpartition("/")[2]) != "default":
            with contextlib.suppress(events.exceptions.ResourceAlreadyExistsException):
                events.create_event_bus(Name=name)


def _create_secrets(emulator: _Emulator, stack: str, template: Template) -> StandIns:
    """Create the secrets that CloudFormation would generate, and tell their ARNs."""
    made: dict[tuple[str, str], Expression] = {}
    secrets = emulator.client("secretsmanager")
    for name, secret in template.of_type("AWS::SecretsManager::Secret").items():
        generated = secrets.get_random_password(**secret["GenerateSecretString"])["RandomPassword"]
        arn = secrets.create_secret(Name=f"{stack}-{name}", SecretString=generated)["ARN"]
        made[name, "Id"] = made[name, "Ref"] = arn
    return made


def _create_stack(
    emulator: _Emulator, stack: str, template: Template, parameters: Mapping[str, str], stand_ins: StandIns
) -> _Evaluated:
    questions = list({_key(expression): expression for expression in _expressions(template)}.items())
    body = template.created_locally({f"Answer{i}": asked for i, (_, asked) in enumerate(questions)}, stand_ins)
    cloudformation: CloudFormationClient = emulator.client("cloudformation")
    cloudformation.create_stack(
        StackName=stack,
        TemplateBody=json.dumps(body),
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
    )
    description = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    if description["StackStatus"] != "CREATE_COMPLETE":
        raise RuntimeError(f"The emulator could not create {stack}: {description['StackStatus']}.")
    values = {output.get("OutputKey", ""): output.get("OutputValue", "") for output in description.get("Outputs", [])}
    answers = {key: values.pop(f"Answer{i}") for i, (key, _) in enumerate(questions)}
    return _Evaluated(values, answers)


def _expressions(template: Template) -> Iterator[Expression]:
    """What only the stack can evaluate among the values that a runner needs."""
    for kind, names in _DECLARED.items():
        for properties in template.of_type(kind).values():
            variables: dict[str, Expression] = properties.get("Environment", {}).get("Variables", {})
            values = (*(properties.get(name) for name in names), *variables.values())
            yield from (value for value in values if isinstance(value, dict))
    for kind in ("AWS::SQS::Queue", "AWS::DynamoDB::Table"):
        yield from ({"Ref": name} for name in template.of_type(kind))
    for target in _targets(template):
        yield from ({"Ref": target.queue}, arn_of(target.queue))


def _create_schedule_groups(emulator: _Emulator, names: tuple[str, ...]) -> None:
    scheduler: EventBridgeSchedulerClient = emulator.client("scheduler")
    for name in names:
        scheduler.create_schedule_group(Name=name)


def _expire_items(emulator: _Emulator, template: Template, evaluated: _Evaluated) -> None:
    """Set the time-to-live attribute, which moto's CloudFormation overlooks."""
    dynamodb: DynamoDBClient = emulator.client("dynamodb")
    for name, table in template.of_type("AWS::DynamoDB::Table").items():
        if expiry := table.get("TimeToLiveSpecification"):
            dynamodb.update_time_to_live(TableName=evaluated({"Ref": name}), TimeToLiveSpecification=expiry)


def _functions(template: Template, evaluated: _Evaluated) -> Iterator[Function]:
    for name, function in template.of_type("AWS::Lambda::Function").items():
        variables: dict[str, Expression] = function.get("Environment", {}).get("Variables", {})
        yield Function(
            name=name,
            handler=evaluated(function["Handler"]),
            environment={key: evaluated(value) for key, value in variables.items()},
            timeout=int(evaluated(function["Timeout"])),
            memory=int(evaluated(function["MemorySize"])),
        )


def _queue_sources(template: Template, evaluated: _Evaluated) -> Iterator[QueueSource]:
    queues = template.of_type("AWS::SQS::Queue")
    for source in template.of_type("AWS::Lambda::EventSourceMapping").values():
        queue = referred(source["EventSourceArn"])
        yield QueueSource(
            function=referred(source["FunctionName"]),
            queue_url=evaluated({"Ref": queue}),
            queue_arn=evaluated(source["EventSourceArn"]),
            fifo=queues[queue].get("FifoQueue", False),
            batch_size=int(evaluated(source["BatchSize"])),
            window=int(evaluated(source.get("MaximumBatchingWindowInSeconds", 0))),
            partial_failures="ReportBatchItemFailures" in source.get("FunctionResponseTypes", []),
        )


def _targets(template: Template) -> Iterator[LocalTarget]:
    return local_targets(template.of_type(RULE))


def _rule_sources(template: Template, evaluated: _Evaluated) -> Iterator[RuleSource]:
    for target in _targets(template):
        yield RuleSource(
            function=target.function,
            queue_url=evaluated({"Ref": target.queue}),
            queue_arn=evaluated(arn_of(target.queue)),
        )


def _rate_sources(template: Template, evaluated: _Evaluated) -> Iterator[RateSource]:
    for name, rule in template.of_type(RULE).items():
        if "ScheduleExpression" not in rule:
            continue
        expression = evaluated(rule["ScheduleExpression"])
        rate = _RATE.fullmatch(expression)
        if rate is None:
            raise ValueError(f"{name} runs at {expression!r}; locally only rate(...) is understood.")
        for target in rule["Targets"]:
            yield RateSource(function=referred(target["Arn"]), every=int(rate[1]) * _SECONDS[rate[2]])


def _http_sources(template: Template, evaluated: _Evaluated) -> Iterator[HttpSource]:
    integrations = template.of_type("AWS::ApiGatewayV2::Integration")
    for route in template.of_type("AWS::ApiGatewayV2::Route").values():
        yield HttpSource(
            function=referred(integrations[referred(route["Target"])]["IntegrationUri"]),
            route=evaluated(route["RouteKey"]),
            authorization=evaluated(route.get("AuthorizationType", "NONE")),
        )


def _key(expression: Expression) -> str:
    return json.dumps(expression, sort_keys=True)
