"""The orchestrator's handler: SQS events in, the failed messages out."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from durable.engine.orchestrator import Delivery
from durable.model.envelope import Wake, to_body
from handlers.orchestrator import LONGEST_DELAY, answer

RUNS = "https://sqs.eu-central-1.amazonaws.com/123456789012/durable-runs.fifo"
TIMERS = "https://sqs.eu-central-1.amazonaws.com/123456789012/durable-timers"
WAKE = to_body(Wake(run_id="run-1", id="w", reason="test"))


@dataclass
class FakeOrchestrator:
    fails: tuple[str, ...] = ()
    deliveries: list[Delivery] = field(default_factory=list)
    remaining: float = 0.0

    def process(self, deliveries, *, remaining):
        self.deliveries += deliveries
        self.remaining = remaining
        return self.fails


@dataclass
class FakeSqs:
    calls: list[Any] = field(default_factory=list)
    error: Exception | None = None

    def change_message_visibility_batch(self, *, QueueUrl, Entries):  # noqa: N803 - boto3's names
        self.calls.append((QueueUrl, Entries))
        if self.error:
            raise self.error

    @property
    def delays(self) -> list[int]:
        return [entry["VisibilityTimeout"] for _, entries in self.calls for entry in entries]


def record(message_id: str, *, body: str = WAKE, received: int = 1, queue: str = "durable-runs.fifo") -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": str(received),
        "SentTimestamp": "1764500000123",
        "SenderId": "AROAEXAMPLE:durable-api",
        "ApproximateFirstReceiveTimestamp": "1764500000200",
    }
    if queue.endswith(".fifo"):
        attributes |= {
            "SequenceNumber": "18849496460467696128",
            "MessageGroupId": "run-1",
            "MessageDeduplicationId": "d41d8cd98f00b204e9800998ecf8427e",
        }
    return {
        "messageId": message_id,
        "receiptHandle": f"handle of {message_id}",
        "body": body,
        "attributes": attributes,
        "messageAttributes": {},
        "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-central-1:123456789012:{queue}",
        "awsRegion": "eu-central-1",
    }


def handle(*records: dict[str, Any], orchestrator: FakeOrchestrator | None = None, sqs: FakeSqs | None = None) -> Any:
    return answer(
        {"Records": list(records)},
        remaining=29.5,
        orchestrator=orchestrator or FakeOrchestrator(),
        sqs=sqs or FakeSqs(),
        queue_urls=(RUNS, TIMERS),
    )


def test_a_fifo_message_becomes_a_delivery_with_its_time_and_number():
    orchestrator = FakeOrchestrator()
    handle(record("m-1"), orchestrator=orchestrator)
    assert orchestrator.deliveries == [
        Delivery(id="m-1", body=WAKE, arrived_at=1_764_500_000.123, sequence="18849496460467696128")
    ]
    assert orchestrator.remaining == 29.5


def test_a_message_of_the_timers_queue_has_no_number():
    orchestrator = FakeOrchestrator()
    handle(record("m-1", queue="durable-timers"), orchestrator=orchestrator)
    assert orchestrator.deliveries[0].sequence == ""


def test_a_batch_that_went_well_answers_no_failures_and_touches_no_queue():
    sqs = FakeSqs()
    assert handle(record("m-1"), record("m-2"), sqs=sqs) == {"batchItemFailures": []}
    assert not sqs.calls


def test_only_the_failed_messages_come_back_and_soon():
    sqs = FakeSqs()
    answered = handle(record("m-1"), record("m-2"), orchestrator=FakeOrchestrator(fails=("m-2",)), sqs=sqs)
    assert answered == {"batchItemFailures": [{"itemIdentifier": "m-2"}]}
    [(url, entries)] = sqs.calls
    assert url == RUNS
    assert entries == [{"Id": "0", "ReceiptHandle": "handle of m-2", "VisibilityTimeout": 2}]


@pytest.mark.parametrize(("received", "delay"), [(1, 2), (2, 4), (5, 32), (9, LONGEST_DELAY), (10_000, LONGEST_DELAY)])
def test_the_delay_grows_with_every_try(received: int, delay: int):
    sqs = FakeSqs()
    handle(record("m-1", received=received), orchestrator=FakeOrchestrator(fails=("m-1",)), sqs=sqs)
    assert sqs.delays == [delay]


def test_a_failed_timer_is_made_visible_in_the_timers_queue():
    sqs = FakeSqs()
    handle(record("m-1", queue="durable-timers"), orchestrator=FakeOrchestrator(fails=("m-1",)), sqs=sqs)
    assert sqs.calls[0][0] == TIMERS


@pytest.mark.parametrize("body", ["", "nonsense", "{}", '{"type":"unheard of","run_id":"r","id":"i"}', "[1]", "null"])
def test_a_body_that_nobody_understands_is_tried_again_at_once_so_that_it_is_soon_among_the_dead_letters(body: str):
    sqs = FakeSqs()
    handle(record("m-1", body=body, received=7), orchestrator=FakeOrchestrator(fails=("m-1",)), sqs=sqs)
    assert sqs.delays == [0]


def test_a_queue_that_refuses_the_change_of_visibility_does_not_fail_the_batch():
    sqs = FakeSqs(error=RuntimeError("throttled"))
    answered = handle(record("m-1"), record("m-2"), orchestrator=FakeOrchestrator(fails=("m-1",)), sqs=sqs)
    assert answered == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}


def test_messages_of_a_foreign_queue_are_left_to_its_visibility_timeout():
    sqs = FakeSqs()
    foreign = record("m-1", queue="somebody-elses")
    assert handle(foreign, orchestrator=FakeOrchestrator(fails=("m-1",)), sqs=sqs)["batchItemFailures"]
    assert not sqs.calls
