"""The queues on SQS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.adapters.errors import translated
from durable.adapters.sizes import check_delay, check_envelope
from durable.model.envelope import to_body

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

    from durable.model.envelope import Envelope


class SqsRunQueue:
    """Implements `RunQueue` on a FIFO queue with content-based de-duplication; the group is the run."""

    def __init__(self, client: SQSClient, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, envelope: Envelope) -> None:
        body = to_body(envelope)
        check_envelope(envelope, body)
        with translated("SQS"):
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=body, MessageGroupId=envelope.run_id)


def send_later(client: SQSClient, queue_url: str, envelope: Envelope, delay: float) -> None:
    """Sends to a standard queue. Delays have whole seconds: never early, so up to a second late."""
    seconds = check_delay(delay)
    body = to_body(envelope)
    check_envelope(envelope, body)
    with translated("SQS"):
        client.send_message(QueueUrl=queue_url, MessageBody=body, DelaySeconds=seconds)
