"""What invokes the functions: the pollers of the queues, the schedules that fire, the rates."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from zoneinfo import ZoneInfo

from durable.local.events import queue_event, rate_event
from durable.local.functions import LocalFunction
from durable.local.invocation import Died, Outcome, Raised, Returned, TimedOut
from durable.local.provision import QueueSource, RateSource
from durable.ports import Clock

if TYPE_CHECKING:
    from types_boto3_scheduler import EventBridgeSchedulerClient
    from types_boto3_sqs import SQSClient

_BUSY: Final = 0.05
"""Seconds between two looks at a queue that had messages a moment ago."""
_QUIET: Final = 0.25
"""The same for one that has been empty for a while."""
_TICK: Final = 1.0
"""Seconds between two looks at the schedules."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something went wrong in an invocation, or a part of the stack could not do its work."""

    kind: Literal["died", "timed out", "raised", "source"]
    source: str
    """The function or the event source."""
    text: str


Report = Callable[[Notice], None]


class MakeEvent(Protocol):
    """What a function is invoked with for these messages."""

    def __call__(self, messages: Sequence[Mapping[str, Any]], *, queue_arn: str, region: str) -> dict[str, Any]: ...


class QueuePoller:
    """Feeds a queue's messages to a function in batches, as an SQS event source mapping does."""

    def __init__(
        self,
        source: QueueSource,
        function: LocalFunction,
        sqs: SQSClient,
        *,
        region: str,
        batches: int,
        report: Report,
        event: MakeEvent = queue_event,
    ) -> None:
        self.name = f"queue {source.queue_arn.rpartition(':')[2]}"
        self._event = event
        self._source = source
        self._function = function
        self._sqs = sqs
        self._region = region
        self._report = report
        self._sequence = itertools.count(1)
        self._numbers: dict[str, int] = {}
        """Of the messages that have been received and are not deleted."""
        self._slots = threading.BoundedSemaphore(batches)
        self._batches = ThreadPoolExecutor(batches, thread_name_prefix=self.name)

    def run(self, stopping: threading.Event) -> None:
        """Polls until told to stop, and returns when the batches in flight have ended."""
        pause = _QUIET
        with self._batches:
            while not stopping.is_set():
                pause = _BUSY if self._take_in() else min(_QUIET, pause * 1.2)
                stopping.wait(pause)

    def poll(self) -> int:
        """Receives one batch and sees it through; the number of messages."""
        messages = self._receive()
        if messages:
            self._handle(messages)
        return len(messages)

    def _receive(self) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(
            QueueUrl=self._source.queue_url,
            MaxNumberOfMessages=min(10, self._source.batch_size),
            MessageSystemAttributeNames=["All"],
            # The emulator answers one request at a time, so a long poll would keep everybody else out.
            WaitTimeSeconds=0,
        )
        messages = [dict(message) for message in answer.get("Messages", [])]
        return [self._numbered(message) for message in messages] if self._source.fifo else messages

    def _numbered(self, message: dict[str, Any]) -> dict[str, Any]:
        """With a sequence number that grows, as SQS has it; moto draws them at random, or gives none."""
        number = self._numbers.setdefault(message["MessageId"], next(self._sequence))
        return {**message, "Attributes": {**message["Attributes"], "SequenceNumber": f"{number:020d}"}}

    def _take_in(self) -> bool:
        """Hands the next batch to a thread; whether there was one."""
        self._slots.acquire()  # no message is received before somebody is free to take it
        messages: list[dict[str, Any]] = []
        try:
            messages = self._receive()
        except Exception as error:  # noqa: BLE001 - the next look may succeed
            self._report(Notice("source", self.name, f"{type(error).__name__}: {error}"))
        if messages:
            self._batches.submit(self._guarded, messages)
        else:
            self._slots.release()
        return bool(messages)

    def _guarded(self, messages: list[dict[str, Any]]) -> None:
        try:
            self._handle(messages)
        except Exception as error:  # noqa: BLE001 - a batch's trouble must not end the poller
            self._report(Notice("source", self.name, f"{type(error).__name__}: {error}"))
        finally:
            self._slots.release()

    def _handle(self, messages: list[dict[str, Any]]) -> None:
        event = self._event(messages, queue_arn=self._source.queue_arn, region=self._region)
        outcome = self._function.invoke(event)
        come_back = "its message comes back" if len(messages) == 1 else f"its {len(messages)} messages come back"
        tell(outcome, self._function.name, self._report, f"; {come_back}")
        if handled := [message for message in messages if message["MessageId"] not in self._failed(outcome, messages)]:
            for message in handled:
                self._numbers.pop(message["MessageId"], None)
            self._sqs.delete_message_batch(
                QueueUrl=self._source.queue_url,
                Entries=[
                    {"Id": str(i), "ReceiptHandle": message["ReceiptHandle"]} for i, message in enumerate(handled)
                ],
            )

    def _failed(self, outcome: Outcome, messages: list[dict[str, Any]]) -> set[str]:
        """The messages that stay in the queue; all of them if the answer makes no sense, as Lambda has it."""
        everything = {message["MessageId"] for message in messages}
        if not isinstance(outcome, Returned):
            return everything
        if not self._source.partial_failures or not outcome.value:
            return set()
        try:
            named = {failure["itemIdentifier"] for failure in outcome.value["batchItemFailures"]}
        except (KeyError, TypeError):
            return everything
        return named if named <= everything else everything  # noqa: FURB136 - sets: this is "subset", not "smaller"


class Schedules:
    """Fires one-time schedules: sends their input to the queue they target, and deletes them."""

    name = "schedules"

    def __init__(
        self,
        groups: Iterable[str],
        scheduler: EventBridgeSchedulerClient,
        sqs: SQSClient,
        *,
        clock: Clock,
        report: Report,
    ) -> None:
        self._groups = tuple(groups)
        self._scheduler = scheduler
        self._sqs = sqs
        self._clock = clock
        self._report = report
        self._due: dict[tuple[str, str], float] = {}

    def run(self, stopping: threading.Event) -> None:
        """Looks every second until told to stop."""
        while not stopping.wait(_TICK):
            try:
                self.fire()
            except Exception as error:  # noqa: BLE001 - the next tick may succeed
                self._report(Notice("source", self.name, f"{type(error).__name__}: {error}"))

    def fire(self) -> int:
        """Fires what is due; the number of schedules that were."""
        now = self._clock.now()
        present = {(group, name) for group in self._groups for name in self._names(group)}
        self._due = {key: self._due[key] if key in self._due else self._read(*key) for key in present}
        due = [key for key, at in self._due.items() if at <= now]
        for group, name in due:
            self._fire(group, name)
        return len(due)

    def _names(self, group: str) -> Iterable[str]:
        for page in self._scheduler.get_paginator("list_schedules").paginate(GroupName=group):
            for schedule in page["Schedules"]:
                yield schedule.get("Name", "")

    def _read(self, group: str, name: str) -> float:
        schedule = self._scheduler.get_schedule(GroupName=group, Name=name)
        return at_time(schedule["ScheduleExpression"], schedule.get("ScheduleExpressionTimezone", "UTC"))

    def _fire(self, group: str, name: str) -> None:
        target = self._scheduler.get_schedule(GroupName=group, Name=name)["Target"]
        account, queue = target["Arn"].split(":")[4:6]
        url = self._sqs.get_queue_url(QueueName=queue, QueueOwnerAWSAccountId=account)["QueueUrl"]
        group_id = target.get("SqsParameters", {}).get("MessageGroupId")
        fifo: dict[str, Any] = {"MessageGroupId": group_id} if group_id else {}
        self._sqs.send_message(QueueUrl=url, MessageBody=target.get("Input", "{}"), **fifo)
        self._scheduler.delete_schedule(GroupName=group, Name=name)
        del self._due[group, name]


class Rate:
    """Invokes a function every so many seconds."""

    def __init__(
        self, source: RateSource, function: LocalFunction, *, region: str, clock: Clock, report: Report
    ) -> None:
        self.name = f"rate of {source.function}"
        self._source = source
        self._function = function
        self._region = region
        self._clock = clock
        self._report = report

    def run(self, stopping: threading.Event) -> None:
        """Invokes until told to stop, the first time after one period."""
        while not stopping.wait(self._source.every):
            event = rate_event(self._clock.now(), rule=self._source.function, region=self._region)
            tell(self._function.invoke(event), self._function.name, self._report)


def at_time(expression: str, timezone: str = "UTC") -> float:
    """The moment of an `at(2026-11-30T10:00:00)` expression; never, for an expression that repeats."""
    if not expression.startswith("at("):
        return float("inf")
    moment = datetime.fromisoformat(expression.removeprefix("at(").removesuffix(")"))
    return moment.replace(tzinfo=ZoneInfo(timezone)).timestamp()


def tell(outcome: Outcome, function: str, report: Report, consequence: str = "") -> None:
    """Reports an invocation that did not return."""
    match outcome:
        case Returned():
            return
        case Raised(kind, message, trace):
            report(Notice("raised", function, f"raised {kind}: {message}{consequence}\n{trace}"))
        case Died() as died:
            report(Notice("died", function, f"its process {died.pid} died ({died.how}){consequence}"))
        case TimedOut(pid, seconds):
            report(
                Notice(
                    "timed out", function, f"process {pid} was killed after its timeout of {seconds:g} s{consequence}"
                )
            )
