"""The queues of the workers on SQS: the end that is sent to, and the end that workers outside Lambda receive from."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from durable.adapters.errors import code_of, translated
from durable.adapters.sizes import check_delay, check_task
from durable.errors import NotAvailable
from durable.model.delivery import TaskDelivery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from types_boto3_sqs.client import SQSClient

    from durable.model.task import StepTask

_GONE: Final = frozenset({"MessageNotInflight", "ReceiptHandleIsInvalid"})
"""What SQS answers when a delivery has been replaced by a later one, or its message was deleted."""


class SqsSteps:
    """Implements `StepQueue`: names with a queue of their own go there, all others to the default queue."""

    def __init__(self, client: SQSClient, default: str | None, own: Mapping[str, str]) -> None:
        self._client = client
        self._default = default
        self._own = own

    def send(self, task: StepTask, *, delay: float = 0.0) -> None:
        body = task.to_text()
        check_task(task, body)
        seconds = check_delay(delay)
        url = self._own.get(task.queue, self._default)
        if url is None:
            raise NotAvailable(
                f'ctx.call on queue "{task.queue}" without a queue for it (DURABLE_STEPS_QUEUE_URL, or its name in '
                "DURABLE_STEPS_QUEUES)"
            )
        with translated("SQS"):
            self._client.send_message(QueueUrl=url, MessageBody=body, DelaySeconds=seconds)


class SqsTaskSource:
    """Implements `TaskSource` on one queue."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def receive(self, *, wait: float, hidden: float) -> Sequence[TaskDelivery]:
        with translated("SQS"):
            reply = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=1,
                WaitTimeSeconds=ceil(wait),
                VisibilityTimeout=ceil(hidden),
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
        return [
            TaskDelivery(
                id=message.get("ReceiptHandle", ""),
                body=message.get("Body", ""),
                receive_count=int(message.get("Attributes", {}).get("ApproximateReceiveCount", "1")),
            )
            for message in reply.get("Messages", [])
        ]

    def acknowledge(self, delivery_id: str) -> None:
        with translated("SQS"):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=delivery_id)

    def hide(self, delivery_id: str, seconds: float) -> None:
        try:
            with translated("SQS"):
                self._client.change_message_visibility(
                    QueueUrl=self._url, ReceiptHandle=delivery_id, VisibilityTimeout=ceil(seconds)
                )
        except ClientError as error:
            if code_of(error) not in _GONE:
                raise
