"""The ports of a deployment on AWS: the only place where clients are made and adapters meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import botocore.session
from botocore.config import Config

from durable.adapters.clock import SystemClock, Ulids
from durable.adapters.dynamodb.store import DynamoStore
from durable.adapters.s3 import S3Blobs
from durable.adapters.secrets import SecretSigning
from durable.adapters.signing import TextSigning
from durable.adapters.sqs import SqsRunQueue
from durable.adapters.steps import SqsSteps, SqsTaskSource
from durable.adapters.texts import with_texts
from durable.adapters.timers import AwsTimers, ScheduleTarget
from durable.ports import NoBlobs, NoSigning, NoSteps, Ports

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_s3.client import S3Client
    from types_boto3_scheduler.client import EventBridgeSchedulerClient
    from types_boto3_sqs.client import SQSClient

    from durable.model.stored import PayloadCodec
    from durable.ports import Signing, StepQueue, TaskSource
    from durable.settings import Settings

CONFIG: Final = Config(
    connect_timeout=2,
    read_timeout=5,
    # At worst three tries of 7 s with pauses of at most 1 and 2 s: 24 s, less than the margin of the shortest invocation.
    retries={"mode": "standard", "total_max_attempts": 3},
    # Steps of one invocation are written side by side.
    max_pool_connections=50,
    tcp_keepalive=True,
    parameter_validation=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """One low-level client a service; all of them are safe to share between threads."""

    dynamodb: DynamoDBClient
    sqs: SQSClient
    scheduler: EventBridgeSchedulerClient
    make_s3: Callable[[], S3Client]
    """Made when it is first needed."""
    make_secrets: Callable[[], Any]
    """The same."""


def make_clients(*, region: str | None = None) -> Clients:
    """Makes the clients from the surroundings (region, credentials, AWS_ENDPOINT_URL): once a process, please.

    A session of botocore alone starts 40 ms faster than boto3's.
    """
    session = botocore.session.get_session()

    def client(service: str) -> Any:
        return session.create_client(service, region_name=region, config=CONFIG)

    return Clients(
        dynamodb=cast("DynamoDBClient", client("dynamodb")),
        sqs=cast("SQSClient", client("sqs")),
        scheduler=cast("EventBridgeSchedulerClient", client("scheduler")),
        make_s3=lambda: cast("S3Client", client("s3")),
        make_secrets=lambda: client("secretsmanager"),
    )


def aws_ports(settings: Settings, clients: Clients | None = None, *, codec: PayloadCodec | None = None) -> Ports:
    """The ports of a deployment; without `clients` they are made here, so call it once a process.

    `codec` is the app's: without it, what it has sealed cannot be read.
    """
    return with_texts(bare_ports(settings, clients or make_clients()), codec)


def bare_ports(settings: Settings, clients: Clients) -> Ports:
    """The adapters as they are: they take what fits into an item or a message, and show what is stored there."""
    clock = SystemClock()
    ids = Ulids(clock)
    return Ports(
        store=DynamoStore(clients.dynamodb, settings.table, shards=settings.index_shards),
        runs=SqsRunQueue(clients.sqs, settings.runs_queue_url),
        timers=AwsTimers(
            clients.sqs,
            clients.scheduler,
            queue_url=settings.timers_queue_url,
            target=ScheduleTarget(
                group=settings.schedule_group,
                role_arn=settings.schedule_role_arn,
                queue_arn=settings.runs_queue_arn,
            ),
            clock=clock,
            ids=ids,
            threshold=settings.timers_threshold,
        ),
        clock=clock,
        new_id=ids,
        blobs=S3Blobs(clients.make_s3, settings.bucket) if settings.bucket else NoBlobs(),
        steps=_steps(settings, clients),
        signing=_signing(settings, clients),
        public_url=settings.public_url,
    )


def task_source(settings: Settings, clients: Clients, queue: str) -> TaskSource | None:
    """The end that workers of this queue receive from; None where it has no queue of its own."""
    url = settings.steps_queue_of(queue)
    return None if url is None else SqsTaskSource(clients.sqs, url)


def _steps(settings: Settings, clients: Clients) -> StepQueue:
    if settings.steps_queue_url is None and not settings.steps_queues:
        return NoSteps()
    return SqsSteps(clients.sqs, settings.steps_queue_url, settings.steps_queues)


def _signing(settings: Settings, clients: Clients) -> Signing:
    if settings.token_secret is not None:
        return TextSigning(settings.token_secret.get_secret_value())
    if settings.token_secret_arn is not None:
        return SecretSigning(clients.make_secrets, settings.token_secret_arn)
    return NoSigning()
