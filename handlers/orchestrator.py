"""The orchestrator function: messages of the runs and timers queues become turns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from durable.engine.orchestrator import Delivery
from durable.model.envelope import from_body
from handlers import bootstrap

log = logging.getLogger("durable")

FIRST_DELAY: Final = 2
"""Seconds until a message that failed is tried again; doubled every time."""
LONGEST_DELAY: Final = 120


class LambdaContext(Protocol):
    """The part of Lambda's context that we look at."""

    def get_remaining_time_in_millis(self) -> int: ...


class Visibility(Protocol):
    """The part of the SQS client that we use here."""

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any: ...  # noqa: N803 - boto3's


class Process(Protocol):
    """What handles a batch: `Orchestrator`."""

    def process(self, deliveries: Sequence[Delivery], *, remaining: float) -> Sequence[str]: ...


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Names the messages of the batch that must come back, as `ReportBatchItemFailures` wants it."""
    container = bootstrap.container()
    return answer(
        event,
        remaining=context.get_remaining_time_in_millis() / 1000,
        orchestrator=container.orchestrator,
        sqs=container.sqs,
        queue_urls=container.queue_urls,
    )


def answer(
    event: Mapping[str, Any],
    *,
    remaining: float,
    orchestrator: Process,
    sqs: Visibility,
    queue_urls: Iterable[str],
) -> dict[str, Any]:
    """Handles one event: the batch first, then the visibility of what failed."""
    records: Sequence[Mapping[str, Any]] = event["Records"]
    failed = set(orchestrator.process([_delivery(record) for record in records], remaining=remaining))
    came_back = [record for record in records if record["messageId"] in failed]
    if came_back:
        _show_again(came_back, sqs, queue_urls)
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in came_back]}


def _delivery(record: Mapping[str, Any]) -> Delivery:
    attributes = record["attributes"]
    return Delivery(
        id=record["messageId"],
        body=record["body"],
        arrived_at=int(attributes["SentTimestamp"]) / 1000,
        sequence=attributes.get("SequenceNumber", ""),
    )


def _show_again(records: Sequence[Mapping[str, Any]], sqs: Visibility, queue_urls: Iterable[str]) -> None:
    """Makes messages visible again soon; the queue's own visibility timeout is as long as a whole invocation."""
    queue = records[0]["eventSourceARN"].rpartition(":")[2]
    url = next((url for url in queue_urls if url.rpartition("/")[2] == queue), None)
    if url is None:
        log.error("queue %s is not one of ours; its messages come back after its visibility timeout", queue)
        return
    entries = [
        {"Id": str(i), "ReceiptHandle": record["receiptHandle"], "VisibilityTimeout": _delay(record)}
        for i, record in enumerate(records)
    ]
    try:
        sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    except Exception:  # the messages come back without it, later
        log.exception("the messages that failed could not be made visible soon")


def _delay(record: Mapping[str, Any]) -> int:
    """Seconds until the next try. None for a body that no try will mend: it is soon among the dead letters.

    As long as it is not, it holds up its FIFO group.
    """
    try:
        from_body(record["body"])
    except ValueError:
        return 0
    received = int(record["attributes"].get("ApproximateReceiveCount", "1"))
    return min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(received - 1, 10))


bootstrap.prepare(lambda container: container.orchestrator)
