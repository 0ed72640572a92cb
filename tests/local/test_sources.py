"""Queues, schedules and rates invoke functions as AWS would."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from moto import mock_aws

from durable.adapters.memory import VirtualClock
from durable.local.invocation import Died, Outcome, Raised, Returned
from durable.local.provision import QueueSource
from durable.local.sources import Notice, QueuePoller, Schedules, at_time

pytestmark = pytest.mark.moto

REGION = "us-east-1"
VISIBILITY = 30


@dataclass
class FakeFunction:
    """Answers with what it is told, and keeps the events."""

    answer: Any = None
    name: str = "Orchestrator"
    events: list[Any] = field(default_factory=list)

    def invoke(self, event: Any) -> Any:
        self.events.append(event)
        return self.answer(event) if callable(self.answer) else self.answer

    @property
    def bodies(self) -> list[list[str]]:
        return [[record["body"] for record in event["Records"]] for event in self.events]


@dataclass
class Queue:
    sqs: Any
    url: str
    arn: str
    dead: str

    def send(self, *bodies: str, group: str | None = "run-1") -> None:
        fifo = {"MessageGroupId": group} if group else {}
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **fifo)

    def left(self, url: str | None = None) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.sqs.get_queue_attributes(QueueUrl=url or self.url, AttributeNames=names)
        return sum(int(number) for number in answer["Attributes"].values())


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs", region_name=REGION)


@pytest.fixture
def runs(sqs: Any) -> Queue:
    dead = sqs.create_queue(QueueName="dead.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    dead_arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    attributes = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "true",
        "VisibilityTimeout": str(VISIBILITY),
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 2}),
    }
    url = sqs.create_queue(QueueName="runs.fifo", Attributes=attributes)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return Queue(sqs, url, arn, dead)


def poller(queue: Queue, function: Any, notices: list[Notice] | None = None, *, partial: bool = True) -> QueuePoller:
    source = QueueSource("Orchestrator", queue.url, queue.arn, True, 10, 0, partial)
    report = (notices if notices is not None else []).append
    return QueuePoller(source, function, queue.sqs, region=REGION, batches=1, report=report)


def make_visible_again(queue: Queue, function: FakeFunction) -> None:
    for record in function.events[-1]["Records"]:
        with contextlib.suppress(queue.sqs.exceptions.ReceiptHandleIsInvalid):  # it has been deleted
            queue.sqs.change_message_visibility(
                QueueUrl=queue.url, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0
            )


def failed(*indexes: int):
    def answer(event: Any) -> Outcome:
        ids = [event["Records"][i]["messageId"] for i in indexes]
        return Returned({"batchItemFailures": [{"itemIdentifier": message_id} for message_id in ids]})

    return answer


def test_messages_of_a_group_come_in_order_with_their_attributes_and_are_deleted(runs: Queue):
    function = FakeFunction(failed())
    runs.send("1", "2", "3")
    assert poller(runs, function).poll() == 3
    assert function.bodies == [["1", "2", "3"]]
    attributes = function.events[0]["Records"][0]["attributes"]
    assert attributes.keys() >= {"SentTimestamp", "MessageGroupId", "ApproximateReceiveCount"}
    assert runs.left() == 0


def test_sequence_numbers_grow_and_a_message_keeps_its_own_when_it_comes_back(runs: Queue):
    def numbers() -> list[str]:
        return [record["attributes"]["SequenceNumber"] for record in function.events[-1]["Records"]]

    function = FakeFunction(failed(0))
    feeding = poller(runs, function)
    runs.send("1", "2", "3")
    feeding.poll()
    first = numbers()
    make_visible_again(runs, function)
    runs.send("4")
    feeding.poll()
    assert first == sorted(set(first))
    assert numbers() == [first[0], max(*first, *numbers())]


def test_a_batch_has_at_most_ten_messages(runs: Queue):
    function = FakeFunction(failed())
    runs.send(*(str(i) for i in range(12)))
    assert poller(runs, function).poll() == 10


def test_only_the_messages_that_failed_stay(runs: Queue):
    runs.send("1", "2", "3")
    poller(runs, FakeFunction(failed(1))).poll()
    assert runs.left() == 1


def test_a_group_waits_for_its_failed_message_and_other_groups_do_not(runs: Queue):
    function = FakeFunction(failed(0))
    runs.send("1")
    poller(runs, function).poll()
    runs.send("2")
    runs.send("other", group="run-2")
    poller(runs, function).poll()
    assert function.bodies == [["1"], ["other"]]


@pytest.mark.parametrize("outcome", [Died(7, -9), Raised("ValueError", "no", "trace")])
def test_an_invocation_that_does_not_return_keeps_its_whole_batch_and_is_reported(runs: Queue, outcome: Outcome):
    notices: list[Notice] = []
    runs.send("1", "2")
    poller(runs, FakeFunction(outcome), notices).poll()
    assert runs.left() == 2
    assert [notice.source for notice in notices] == ["Orchestrator"]


@pytest.mark.parametrize(
    "answer", [{"batchItemFailures": [{"itemIdentifier": "never seen"}]}, {"batchItemFailures": [{}]}, "nonsense", [1]]
)
def test_an_answer_that_makes_no_sense_fails_the_batch(runs: Queue, answer: Any):
    runs.send("1")
    poller(runs, FakeFunction(Returned(answer))).poll()
    assert runs.left() == 1


@pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": []}])
def test_an_empty_answer_means_that_all_went_well(runs: Queue, answer: Any):
    runs.send("1")
    poller(runs, FakeFunction(Returned(answer))).poll()
    assert runs.left() == 0


def test_without_partial_failures_a_batch_that_returns_is_done(runs: Queue):
    runs.send("1")
    poller(runs, FakeFunction(failed(0)), partial=False).poll()
    assert runs.left() == 0


def test_a_message_that_fails_too_often_goes_to_the_dead_letters(runs: Queue):
    function = FakeFunction(failed(0))
    runs.send("poison")
    for _ in range(2):
        poller(runs, function).poll()
        make_visible_again(runs, function)
    assert poller(runs, function).poll() == 0
    assert (runs.left(), runs.left(runs.dead)) == (0, 1)


@pytest.fixture
def scheduler(sqs: Any) -> Any:
    client = boto3.client("scheduler", region_name=REGION)
    client.create_schedule_group(Name="timers")
    return client


def schedule(scheduler: Any, queue: Queue, name: str, at: str) -> None:
    scheduler.create_schedule(
        GroupName="timers",
        Name=name,
        ScheduleExpression=f"at({at})",
        FlexibleTimeWindow={"Mode": "OFF"},
        ActionAfterCompletion="DELETE",
        Target={
            "Arn": queue.arn,
            "RoleArn": "arn:aws:iam::123456789012:role/wake",
            "Input": f'"{name}"',
            "SqsParameters": {"MessageGroupId": "run-1"},
        },
    )


def schedules(scheduler: Any, queue: Queue, clock: VirtualClock) -> Schedules:
    return Schedules(["timers"], scheduler, queue.sqs, clock=clock, report=[].append)


def test_a_due_schedule_sends_its_input_to_its_queue_and_is_deleted(runs: Queue, scheduler: Any):
    schedule(scheduler, runs, "early", "2100-01-01T00:00:00")
    schedule(scheduler, runs, "late", "2100-01-01T00:05:00")
    firing = schedules(scheduler, runs, VirtualClock(at_time("at(2100-01-01T00:01:00)")))
    assert (firing.fire(), firing.fire()) == (1, 0)
    function = FakeFunction(failed())
    poller(runs, function).poll()
    assert function.bodies == [['"early"']]
    assert [found["Name"] for found in scheduler.list_schedules(GroupName="timers")["Schedules"]] == ["late"]


def test_a_schedule_that_is_deleted_before_its_time_does_not_fire(runs: Queue, scheduler: Any):
    clock = VirtualClock(at_time("at(2100-01-01T00:00:00)") - 1)
    firing = schedules(scheduler, runs, clock)
    schedule(scheduler, runs, "gone", "2100-01-01T00:00:00")
    firing.fire()
    scheduler.delete_schedule(GroupName="timers", Name="gone")
    clock.sleep(5)
    assert firing.fire() == 0


def test_the_time_of_an_expression_is_read_in_its_zone_and_one_that_repeats_never_fires():
    assert at_time("at(1970-01-01T01:00:10)", "Europe/Berlin") == 10
    assert at_time("rate(1 minute)") == float("inf")
