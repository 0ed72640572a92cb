"""The remote-step function's handler: SQS events in, the tasks that come back out."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from durable.model.delivery import TaskDelivery
from handlers.remote_steps import HIDDEN_SECONDS, LONGEST_DELAY, answer

STEPS = "https://sqs.eu-central-1.amazonaws.com/123456789012/durable-steps"
GPU = "https://sqs.eu-central-1.amazonaws.com/123456789012/durable-gpu"


@dataclass
class FakeWorker:
    fails: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    """What it keeps hidden while it works."""
    deliveries: list[TaskDelivery] = field(default_factory=list)
    told: tuple[float, str | None] = (0.0, None)

    def process(self, deliveries, *, remaining, worker=None, visibility=None):
        self.deliveries += deliveries
        self.told = (remaining, worker)
        for delivery_id in self.hides:
            assert visibility is not None
            visibility.hide(delivery_id, visibility.seconds)
        return self.fails


@dataclass
class FakeSqs:
    calls: list[tuple[str, str, int]] = field(default_factory=list)
    error: Exception | None = None

    def change_message_visibility(self, *, QueueUrl, ReceiptHandle, VisibilityTimeout):  # noqa: N803 - boto3's names
        self.calls.append((QueueUrl, ReceiptHandle, VisibilityTimeout))
        if self.error:
            raise self.error


def record(message_id: str, *, received: int = 1, queue: str = "durable-steps") -> dict[str, Any]:
    return {
        "messageId": message_id,
        "receiptHandle": f"handle of {message_id}",
        "body": f"body of {message_id}",
        "attributes": {"ApproximateReceiveCount": str(received), "SentTimestamp": "1764500000123"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-central-1:123456789012:{queue}",
    }


def handle(*records: dict[str, Any], worker: FakeWorker | None = None, sqs: FakeSqs | None = None) -> Any:
    return answer(
        {"Records": list(records)},
        remaining=29.5,
        request_id="req-1",
        worker=worker or FakeWorker(),
        sqs=sqs or FakeSqs(),
        queue_urls=(STEPS, GPU),
    )


def test_a_message_becomes_a_delivery_that_knows_how_often_it_came():
    worker = FakeWorker()
    assert handle(record("m-1", received=3), worker=worker) == {"batchItemFailures": []}
    assert worker.deliveries == [TaskDelivery(id="m-1", body="body of m-1", receive_count=3)]
    assert worker.told == (29.5, "lambda req-1")


def test_only_what_failed_comes_back_and_soon():
    sqs = FakeSqs()
    answered = handle(record("m-1"), record("m-2"), worker=FakeWorker(fails=("m-2",)), sqs=sqs)
    assert answered == {"batchItemFailures": [{"itemIdentifier": "m-2"}]}
    assert sqs.calls == [(STEPS, "handle of m-2", 5)]


@pytest.mark.parametrize(("received", "delay"), [(1, 5), (2, 10), (4, 40), (5, LONGEST_DELAY), (10_000, LONGEST_DELAY)])
def test_it_comes_back_later_each_time(received: int, delay: int):
    sqs = FakeSqs()
    handle(record("m-1", received=received), worker=FakeWorker(fails=("m-1",)), sqs=sqs)
    assert [call[2] for call in sqs.calls] == [delay]


def test_what_is_being_performed_stays_hidden_in_the_queue_that_it_came_from():
    sqs = FakeSqs()
    handle(record("m-1", queue="durable-gpu"), worker=FakeWorker(hides=("m-1",)), sqs=sqs)
    assert sqs.calls == [(GPU, "handle of m-1", int(HIDDEN_SECONDS))]


def test_messages_of_an_unknown_queue_are_performed_and_left_to_its_own_visibility():
    sqs = FakeSqs()
    answered = handle(record("m-1", queue="others"), worker=FakeWorker(fails=("m-1",), hides=("m-1",)), sqs=sqs)
    assert (answered["batchItemFailures"], sqs.calls) == ([{"itemIdentifier": "m-1"}], [])


def test_a_refused_change_of_visibility_changes_no_answer():
    sqs = FakeSqs(error=RuntimeError("throttled"))
    answered = handle(record("m-1"), worker=FakeWorker(fails=("m-1",)), sqs=sqs)
    assert answered == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
