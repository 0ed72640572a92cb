"""The adapters under contract: the ports, and the other ends of their queues."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from durable.adapters.dynamodb.store import DynamoStore
from durable.adapters.memory import (
    MemoryRunQueue,
    MemoryStepQueue,
    MemoryStore,
    MemoryTaskSource,
    MemoryTimers,
    VirtualClock,
)
from durable.adapters.steps import SqsTaskSource
from durable.aws import Clients, bare_ports
from durable.local.provision import provision
from durable.local.template import read_template
from durable.model.envelope import Envelope, from_body
from durable.ports import Clock, Ids, Ports, Store, TaskSource
from durable.settings import Settings
from tests.contract.strict import refuse_what_aws_refuses

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
PAGE_ITEMS = 3


@dataclass(frozen=True)
class Message:
    receipt: str
    envelope: Envelope
    body: str


@dataclass(frozen=True)
class Scheduled:
    run_id: str
    fires_at: float
    envelope: Envelope


class World(Protocol):
    store: Store
    """Its pages hold three items, so that every load is several reads."""
    ports: Ports

    def receive_runs(self) -> Sequence[Message]: ...
    def receive_timers(self) -> Sequence[Message]: ...
    def delayed_timers(self) -> int: ...
    def acknowledge(self, receipt: str) -> None: ...
    def release(self, receipt: str) -> None: ...
    def schedules(self) -> Sequence[Scheduled]: ...
    def tasks(self, queue: str = "default") -> TaskSource:
        """The other end of a workers' queue; "gpu" has one of its own."""
        ...


class MemoryWorld:
    def __init__(self) -> None:
        clock = VirtualClock()
        numbers = iter(range(1_000_000))

        def new_id() -> str:
            return f"id-{next(numbers)}"

        self._runs = MemoryRunQueue(clock)
        self._timers = MemoryTimers(clock, new_id, self._runs)
        self.store: Store = MemoryStore(page_size=PAGE_ITEMS)
        self._steps = MemoryStepQueue(clock)
        self.ports = replace(memory_ports(self.store, self._runs, self._timers, clock, new_id), steps=self._steps)

    def receive_runs(self) -> Sequence[Message]:
        return [Message(got.receipt, from_body(got.body), got.body) for got in self._runs.receive()]

    def receive_timers(self) -> Sequence[Message]:
        return [Message(got.receipt, from_body(got.body), got.body) for got in self._timers.receive()]

    def delayed_timers(self) -> int:
        return sum(message.visible_at > self.ports.clock.now() for message in self._timers.pending)

    def tasks(self, queue: str = "default") -> TaskSource:
        return MemoryTaskSource(self._steps)

    def acknowledge(self, receipt: str) -> None:
        self._runs.acknowledge(receipt)

    def release(self, receipt: str) -> None:
        self._runs.release(receipt)

    def schedules(self) -> Sequence[Scheduled]:
        return [Scheduled(it.run_id, it.fires_at, from_body(it.body)) for it in self._timers.schedules]


def memory_ports(store: Store, runs: MemoryRunQueue, timers: MemoryTimers, clock: Clock, new_id: Ids) -> Ports:
    return Ports(store=store, runs=runs, timers=timers, clock=clock, new_id=new_id)


def moto_world(clients: Clients, *, stack: str) -> "AwsWorld":
    """The resources that template.yaml declares, made anew in moto."""
    refuse_what_aws_refuses(clients)
    stood = provision(TEMPLATE, stack=stack, region=clients.sqs.meta.region_name)
    return AwsWorld(clients, Settings.from_environment(stood.functions["OrchestratorFunction"].environment))


def ministack_world(clients: Clients, *, stack: str) -> "AwsWorld":
    """The template's table, and queues like the template's, in an emulator that has its own idea of DynamoDB."""
    (table,) = read_template(TEMPLATE, {}, region=clients.sqs.meta.region_name).of_type("AWS::DynamoDB::Table").values()
    names = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    clients.dynamodb.create_table(TableName=stack, **{name: table[name] for name in names})
    fifo: Any = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "150"}
    runs = clients.sqs.create_queue(QueueName=f"{stack}-runs.fifo", Attributes=fifo)["QueueUrl"]
    timers = clients.sqs.create_queue(QueueName=f"{stack}-timers", Attributes={"VisibilityTimeout": "150"})["QueueUrl"]
    steps = clients.sqs.create_queue(QueueName=f"{stack}-steps")["QueueUrl"]
    clients.scheduler.create_schedule_group(Name=stack)
    account = "000000000000"
    settings = Settings(
        app="examples.orders.app:app",
        table=stack,
        runs_queue_url=runs,
        runs_queue_arn=f"arn:aws:sqs:{clients.sqs.meta.region_name}:{account}:{stack}-runs.fifo",
        timers_queue_url=timers,
        steps_queue_url=steps,
        schedule_group=stack,
        schedule_role_arn=f"arn:aws:iam::{account}:role/any",
    )
    return AwsWorld(clients, settings)


class AwsWorld:
    """The AWS adapters over an emulator."""

    def __init__(self, clients: Clients, settings: Settings) -> None:
        own = clients.sqs.create_queue(QueueName=f"{settings.table}-gpu")["QueueUrl"]
        settings = settings.model_copy(update={"steps_queues": {"gpu": own}})
        self.clients = clients
        self.settings = settings
        self.ports = bare_ports(settings, clients)
        self.store: Store = DynamoStore(clients.dynamodb, settings.table, page_items=PAGE_ITEMS)

    def receive_runs(self) -> Sequence[Message]:
        return self._receive(self.settings.runs_queue_url)

    def receive_timers(self) -> Sequence[Message]:
        return self._receive(self.settings.timers_queue_url)

    def delayed_timers(self) -> int:
        name = "ApproximateNumberOfMessagesDelayed"
        url = self.settings.timers_queue_url
        reply = self.clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(reply.get("Attributes", {})[name])

    def tasks(self, queue: str = "default") -> TaskSource:
        url = self.settings.steps_queues.get(queue) or self.settings.steps_queue_url
        assert url is not None
        return SqsTaskSource(self.clients.sqs, url)

    def acknowledge(self, receipt: str) -> None:
        self.clients.sqs.delete_message(QueueUrl=self.settings.runs_queue_url, ReceiptHandle=receipt)

    def release(self, receipt: str) -> None:
        self.clients.sqs.change_message_visibility(
            QueueUrl=self.settings.runs_queue_url, ReceiptHandle=receipt, VisibilityTimeout=0
        )

    def schedules(self) -> Sequence[Scheduled]:
        scheduler: Any = self.clients.scheduler
        group = self.settings.schedule_group
        names = [row["Name"] for row in scheduler.list_schedules(GroupName=group)["Schedules"]]
        return [scheduled(scheduler.get_schedule(GroupName=group, Name=name)) for name in names]

    def clear_table(self) -> None:
        table = self.settings.table
        for item in self._items(table):
            self.clients.dynamodb.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})

    def _items(self, table: str) -> list[Any]:
        pages = self.clients.dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return [item for page in pages for item in page["Items"]]

    def _receive(self, url: str) -> Sequence[Message]:
        reply = self.clients.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        return [
            Message(got.get("ReceiptHandle", ""), from_body(got.get("Body", "")), got.get("Body", ""))
            for got in reply.get("Messages", [])
        ]


def scheduled(schedule: Any) -> Scheduled:
    expression = schedule["ScheduleExpression"].removeprefix("at(").removesuffix(")")
    assert schedule["ActionAfterCompletion"] == "DELETE"
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    assert json.loads(schedule["Target"]["Input"])["run_id"] == schedule["Target"]["SqsParameters"]["MessageGroupId"]
    return Scheduled(
        run_id=schedule["Target"]["SqsParameters"]["MessageGroupId"],
        fires_at=datetime.fromisoformat(expression).replace(tzinfo=UTC).timestamp(),
        envelope=from_body(schedule["Target"]["Input"]),
    )
