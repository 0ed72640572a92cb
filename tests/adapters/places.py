"""Where a scene is played: adapters on moto, beside the same over a line that fails, and what a call has left there."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import botocore.session
from moto.core.models import botocore_stubber
from moto.dynamodb.models import dynamodb_backends

from durable.adapters.dynamodb.store import DynamoStore
from durable.adapters.memory import VirtualClock
from durable.adapters.s3 import S3Blobs
from durable.adapters.secrets import SecretSigning
from durable.adapters.sqs import SqsRunQueue
from durable.adapters.steps import SqsSteps, SqsTaskSource
from durable.adapters.timers import AwsTimers, ScheduleTarget
from durable.aws import CONFIG
from durable.model.envelope import from_body
from durable.model.task import StepTask
from tests.adapters.botocore_faults import Line
from tests.adapters.scenes import SCENES, STOCK, Act
from tests.contract.builders import NOW
from tests.contract.worlds import AwsWorld

SERVICES = {
    "store": ("dynamodb",),
    "runs": ("sqs",),
    "steps": ("sqs",),
    "source": ("sqs",),
    "timers": ("sqs", "scheduler"),
    "blobs": ("s3",),
    "signing": ("secretsmanager",),
}
"""What each port talks to."""

NUMBERS = count()
ROLE_ARN = "arn:aws:iam::123456789012:role/any"
QUEUE_ARN = "arn:aws:sqs:eu-central-1:123456789012:runs.fifo"
SECRET = "s" * 64


class Source(SqsTaskSource):
    """The receiving end, and for those who make ready a way to send."""

    def sent(self, task: StepTask) -> None:
        SqsSteps(self._client, self._url, {}).send(task)


@dataclass(frozen=True)
class Resources:
    runs: str
    standard: str
    group: str
    bucket: str
    secret: str


class Place:
    """Two tables, which go back to what they were; queues and the like of their own for each call."""

    def __init__(self, world: AwsWorld) -> None:
        self._world = world
        self._session = botocore.session.get_session()
        self._clients: dict[str, Any] = {"dynamodb": world.clients.dynamodb, "sqs": world.clients.sqs}
        for service in ("scheduler", "s3", "secretsmanager"):
            self._clients[service] = self._session.create_client(service, config=CONFIG)
        stock: Any = {
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "sku", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "sku", "AttributeType": "S"}],
        }
        world.clients.dynamodb.create_table(TableName=STOCK, **stock)
        self._resources = Resources("", "", "", "", "")
        # Emptying and reading tables by requests would cost ten times what the scenes do.
        (backend,) = [it for account in dynamodb_backends.values() for it in account.values() if STOCK in it.tables]
        self._backend: Any = backend
        self._arranged: dict[str, list[Any]] = {}
        self._acts: dict[str, Act] = {}

    @property
    def _tables(self) -> list[Any]:
        """A transaction that is refused makes them anew."""
        return [self._backend.tables[name] for name in (self._world.settings.table, STOCK)]

    def arranged(self, name: str) -> Act:
        """Makes ready for a call as if there had been none before, and gives it."""
        port = name.partition(".")[0]
        if port != "store":
            self._make_anew(port)
            return SCENES[name](self._adapter(port, self._clients))
        if name not in self._arranged:
            for table in self._tables:
                table.items.clear()
            self._acts[name] = SCENES[name](self._adapter(port, self._clients))
            self._arranged[name] = [deepcopy(table.items) for table in self._tables]
        for table, items in zip(self._tables, self._arranged[name], strict=True):
            table.items = deepcopy(items)
        return self._acts[name]

    def _make_anew(self, port: str) -> None:
        name = f"faults-{next(NUMBERS)}"
        clients, made = self._clients, self._resources
        match port:
            case "runs":
                fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
                url = clients["sqs"].create_queue(QueueName=f"{name}.fifo", Attributes=fifo)["QueueUrl"]
                made = replace(made, runs=url)
            case "steps" | "source" | "timers":
                made = replace(made, standard=clients["sqs"].create_queue(QueueName=name)["QueueUrl"], group=name)
                clients["scheduler"].create_schedule_group(Name=name)
            case "blobs":
                where = {"LocationConstraint": "eu-central-1"}
                clients["s3"].create_bucket(Bucket=name, CreateBucketConfiguration=where)
                made = replace(made, bucket=name)
            case _:
                secret = clients["secretsmanager"].create_secret(Name=name, SecretString=SECRET)["ARN"]
                made = replace(made, secret=secret)
        self._resources = made

    def on_a_line(self, port: str, service: str) -> tuple[Any, Line]:
        """The adapter, with a client of its own for one service; botocore counts what a client has tried again."""
        line = Line(botocore_stubber)
        client = self._session.create_client(service, config=CONFIG)
        line.attach(client)
        return self._adapter(port, {**self._clients, service: client}), line

    def left(self, port: str) -> Any:
        """What can be found in the world now."""
        match port:
            case "store":
                items, rows = (table.items.values() for table in self._tables)
                found = [*(item for partition in items for item in partition.values()), *rows]
                return [item.to_json()["Attributes"] for item in found]
            case "runs":
                return self._messages(self._resources.runs)
            case "timers":
                # A standard queue may give a message twice, and so may a sender that cannot know: once is enough.
                bodies = {self._intention(body) for body in self._messages(self._resources.standard)}
                return bodies, self._delayed(), self._schedules()
            case "steps" | "source":
                return set(self._messages(self._resources.standard)), self._delayed()
            case "blobs":
                listed = self._clients["s3"].list_objects_v2(Bucket=self._resources.bucket)
                return [(item["Key"], item["Size"]) for item in listed.get("Contents", [])]
            case _:
                return None

    def _adapter(self, port: str, clients: dict[str, Any]) -> Any:
        made, sqs = self._resources, clients["sqs"]
        adapters: dict[str, Callable[[], Any]] = {
            "store": lambda: DynamoStore(clients["dynamodb"], self._world.settings.table, pause=lambda _: None),
            "runs": lambda: SqsRunQueue(sqs, made.runs),
            "steps": lambda: SqsSteps(sqs, made.standard, {}),
            "source": lambda: Source(sqs, made.standard),
            "timers": lambda: AwsTimers(
                sqs,
                clients["scheduler"],
                queue_url=made.standard,
                target=ScheduleTarget(group=made.group, role_arn=ROLE_ARN, queue_arn=QUEUE_ARN),
                clock=VirtualClock(NOW),
                ids=lambda: f"id-{next(NUMBERS)}",
            ),
            "blobs": lambda: S3Blobs(lambda: clients["s3"], made.bucket),
            "signing": lambda: SecretSigning(lambda: clients["secretsmanager"], made.secret),
        }
        return adapters[port]()

    def _messages(self, url: str) -> list[str]:
        reply = self._clients["sqs"].receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [message["Body"] for message in reply.get("Messages", [])]

    def _delayed(self) -> bool:
        name = "ApproximateNumberOfMessagesDelayed"
        url = self._resources.standard
        told = self._clients["sqs"].get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return told["Attributes"][name] != "0"

    def _schedules(self) -> list[str]:
        listed = self._clients["scheduler"].list_schedules(GroupName=self._resources.group)
        return [schedule["Name"] for schedule in listed["Schedules"]]

    @staticmethod
    def _intention(body: str) -> Any:
        envelope: Any = from_body(body)
        return replace(envelope, id="")
