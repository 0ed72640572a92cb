"""The functions of the template in one process over emulated AWS, each with clients of its own that tell what they ask for."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from durable.aws import Clients, make_clients
from durable.local.events import HttpRequest, http_event, queue_event
from durable.local.provision import Provisioned, provision
from durable.settings import Settings
from handlers import events, orchestrator, remote_steps
from handlers.api import build
from handlers.bootstrap import Container
from handlers.runs import Runs
from tests.security.everything import TABLE, app

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
Asked = tuple[str, str]
"""An action of IAM, and the logical name of the resource in the template."""


class LambdaContext:
    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


class Deployed:
    def __init__(self, name: str) -> None:
        self.stack: Provisioned = provision(TEMPLATE, stack=name)
        self.admin = make_clients(region=self.stack.region)
        self.asked: defaultdict[str, set[Asked]] = defaultdict(set)
        self._containers: dict[str, Container] = {}
        keys: Any = [{"AttributeName": "pk", "KeyType": "HASH"}]
        types: Any = [{"AttributeName": "pk", "AttributeType": "S"}]
        self.admin.dynamodb.create_table(
            TableName=TABLE, KeySchema=keys, AttributeDefinitions=types, BillingMode="PAY_PER_REQUEST"
        )
        environment = self.stack.functions["ApiFunction"].environment
        self.settings = Settings.from_environment(environment)
        self._names = {
            self.settings.runs_queue_url: "RunsQueue",
            self.settings.timers_queue_url: "TimersQueue",
            self.settings.steps_queue_url: "StepsQueue",
            self.settings.table: "Table",
            self.settings.bucket: "Bucket",
            self.settings.token_secret_arn: "TokenSecret",
            TABLE: "a table of one's own",
        }

    # What the functions do

    def request(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        container = self.container("ApiFunction")
        api = build(Runs(container.app, container.client, container.ports), container.claims)
        data = b"" if body is None else json.dumps(body).encode()
        given = [(name.replace("_", "-"), text) for name, text in headers.items()]
        context: Any = LambdaContext()
        answer = api.resolve(http_event(HttpRequest(method, target, given, data), 0.0), context)
        return answer["statusCode"], json.loads(answer["body"] or "null")

    def event(self, name: str, detail: Any, event_id: str) -> None:
        occurred = {"detail-type": name, "detail": detail, "id": event_id, "source": "shop"}
        events.publish(occurred, self.container("EventsFunction").ports)

    def sweep(self) -> None:
        self.container("MaintenanceFunction").maintenance.sweep(remaining=50)

    def settle(self, *, steps: bool = True) -> None:
        """Has everything handled that is in the queues and not delayed."""
        runs, timers = self.settings.runs_queue_url, self.settings.timers_queue_url
        while self._turn(runs) or self._turn(timers) or (steps and self._step()):
            pass

    def garbage(self) -> None:
        """Somebody has sent what nobody can read."""
        runs: Any = {"QueueUrl": self.settings.runs_queue_url, "MessageGroupId": "g"}
        self.admin.sqs.send_message(MessageBody="garbage", **runs)
        self.admin.sqs.send_message(MessageBody="garbage", QueueUrl=str(self.settings.steps_queue_url))
        self.settle()

    def container(self, function: str) -> Container:
        if function not in self._containers:
            settings = Settings.from_environment(self.stack.functions[function].environment)
            self._containers[function] = Container(settings, self._listened_to(function), app)
        return self._containers[function]

    def _turn(self, url: str) -> bool:
        received = self._received(url)
        if received:
            container = self.container("OrchestratorFunction")
            orchestrator.answer(
                received, remaining=60.0, orchestrator=container.orchestrator, sqs=container.sqs,
                queue_urls=container.queue_urls,
            )  # fmt: skip
        return received is not None

    def _step(self) -> bool:
        url = str(self.settings.steps_queue_url)
        received = self._received(url)
        if received:
            container = self.container("RemoteStepsFunction")
            remote_steps.answer(
                received, remaining=330.0, request_id="request-1", worker=container.remote_worker, sqs=container.sqs,
                queue_urls=[url],
            )  # fmt: skip
        return bool(received)

    def _received(self, url: str) -> dict[str, Any] | None:
        """One message at a time, and none twice: the emulator is not made for several threads."""
        sqs: Any = self.admin.sqs
        reply = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1, AttributeNames=["All"])
        messages = reply.get("Messages", [])
        if not messages:
            return None
        sqs.delete_message(QueueUrl=url, ReceiptHandle=messages[0]["ReceiptHandle"])
        arn = f"arn:aws:sqs:{self.stack.region}:123456789012:{url.rpartition('/')[2]}"
        return queue_event(messages, queue_arn=arn, region=self.stack.region)

    # What they ask for

    def _listened_to(self, function: str) -> Clients:
        clients = make_clients(region=self.stack.region)

        def told(client: Any) -> Any:
            client.meta.events.register("before-parameter-build", hear)
            return client

        def hear(params: dict[str, Any], model: Any, **_: Any) -> None:
            service = model.service_model.service_name
            self.asked[function].update(self._actions(service, model.name, params))

        for client in (clients.dynamodb, clients.sqs, clients.scheduler):
            told(client)
        make_s3, make_secrets = clients.make_s3, clients.make_secrets
        return replace(clients, make_s3=lambda: told(make_s3()), make_secrets=lambda: told(make_secrets()))

    def _actions(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[Asked]:
        """What IAM asks to be allowed for a request (Service Authorization Reference)."""
        match service, operation:
            case "dynamodb", "TransactWriteItems":
                for item in params["TransactItems"]:
                    ((action, arguments),) = item.items()
                    name = {"ConditionCheck": "ConditionCheckItem"}.get(action, f"{action}Item")
                    yield f"dynamodb:{name}", self._names[arguments["TableName"]]
            case "dynamodb", "BatchWriteItem" | "BatchGetItem":
                for table in params["RequestItems"]:
                    yield f"dynamodb:{operation}", self._names[table]
            case "dynamodb", _:
                index = f"/{params['IndexName']}" if "IndexName" in params else ""
                yield f"dynamodb:{operation}", self._names[params["TableName"]] + index
            case "sqs", _:
                yield f"sqs:{operation.removesuffix('Batch')}", self._names[params["QueueUrl"]]
            case "scheduler", _:
                yield f"scheduler:{operation}", "ScheduleGroup"
                yield "iam:PassRole", "ScheduleRole"
            case "s3", "ListObjectsV2":
                yield "s3:ListBucket", self._names[params["Bucket"]]
            case "s3", _:
                action = operation.replace("DeleteObjects", "DeleteObject")
                yield f"s3:{action}", f"{self._names[params['Bucket']]}/*"
            case "secretsmanager", _:
                yield f"secretsmanager:{operation}", self._names[params["SecretId"]]
            case _:
                raise AssertionError(f"{service}:{operation} is new to this test")
