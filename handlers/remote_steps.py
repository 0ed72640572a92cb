"""The remote-step function: tasks of the steps queue become attempts at remote steps."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from durable.engine.worker import Visibility
from durable.model.delivery import TaskDelivery
from handlers import bootstrap

log = logging.getLogger("durable")

FIRST_DELAY: Final = 5
"""Seconds until a task that came back is tried again; doubled every time."""
LONGEST_DELAY: Final = 60
HIDDEN_SECONDS: Final = 120.0
"""How long a task stays hidden at a time while its body runs, so that a worker's death is noticed soon."""


class LambdaContext(Protocol):
    """The part of Lambda's context that we look at."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


class Queue(Protocol):
    """The part of the SQS client that we use here."""

    def change_message_visibility(
        self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int  # noqa: N803 - boto3's
    ) -> Any: ...  # fmt: skip


class Process(Protocol):
    """What performs a batch: `RemoteWorker`."""

    def process(
        self,
        deliveries: Sequence[TaskDelivery],
        *,
        remaining: float,
        worker: str | None = None,
        visibility: Visibility | None = None,
    ) -> Sequence[str]: ...


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Names the messages of the batch that must come back, as `ReportBatchItemFailures` wants it."""
    container = bootstrap.container()
    settings = container.settings
    own = [url for url in (settings.steps_queue_url, *settings.steps_queues.values()) if url is not None]
    return answer(
        event,
        remaining=context.get_remaining_time_in_millis() / 1000,
        request_id=context.aws_request_id,
        worker=container.remote_worker,
        sqs=container.sqs,
        queue_urls=own,
    )


def answer(
    event: Mapping[str, Any],
    *,
    remaining: float,
    request_id: str,
    worker: Process,
    sqs: Queue,
    queue_urls: Sequence[str],
) -> dict[str, Any]:
    """Handles one event: the batch first, then the visibility of what comes back."""
    records: Sequence[Mapping[str, Any]] = event["Records"]
    hidden = Hidden(records, sqs, queue_urls)
    deliveries = [_delivery(record) for record in records]
    failed = worker.process(deliveries, remaining=remaining, worker=f"lambda {request_id}", visibility=hidden)
    for delivery in deliveries:
        if delivery.id in failed:
            hidden.show_again(delivery)
    return {"batchItemFailures": [{"itemIdentifier": delivery_id} for delivery_id in failed]}


class Hidden:
    """Implements `Visibility` for the messages of one event."""

    seconds = HIDDEN_SECONDS

    def __init__(self, records: Sequence[Mapping[str, Any]], sqs: Queue, queue_urls: Sequence[str]) -> None:
        queue = records[0]["eventSourceARN"].rpartition(":")[2]
        self._url = next((url for url in queue_urls if url.rpartition("/")[2] == queue), None)
        if self._url is None:
            log.error("queue %s is not one of ours; its messages come back after its visibility timeout", queue)
        self._receipts: dict[str, str] = {record["messageId"]: record["receiptHandle"] for record in records}
        self._sqs = sqs

    def hide(self, delivery_id: str, seconds: float) -> None:
        """Hides a message for so long from now."""
        if self._url is not None:
            self._sqs.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=self._receipts[delivery_id], VisibilityTimeout=int(seconds)
            )

    def show_again(self, delivery: TaskDelivery) -> None:
        """Lets a message come back soon; the queue's own visibility timeout is as long as several invocations."""
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(delivery.receive_count - 1, 10))
        try:
            self.hide(delivery.id, delay)
        except Exception:  # it comes back without it, later
            log.exception("message %s could not be made visible soon", delivery.id)


def _delivery(record: Mapping[str, Any]) -> TaskDelivery:
    received = int(record["attributes"].get("ApproximateReceiveCount", "1"))
    return TaskDelivery(id=record["messageId"], body=record["body"], receive_count=received)


bootstrap.prepare(lambda container: container.remote_worker)
