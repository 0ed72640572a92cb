"""Timers on AWS: an SQS delay for what is due soon, a one-time EventBridge schedule for what is due later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from durable.adapters.errors import code_of, translated
from durable.adapters.sqs import send_later
from durable.model.envelope import TimerFired, to_body
from durable.model.limits import SQS_DELAY_SECONDS

if TYPE_CHECKING:
    from types_boto3_scheduler.client import EventBridgeSchedulerClient
    from types_boto3_sqs.client import SQSClient

    from durable.model.envelope import Envelope
    from durable.ports import Clock, Ids

SCHEDULE_LEAD: Final = 60.0
"""Scheduler fires within the minute that starts at the time it is given, so it is given one earlier."""

CLOCK_SKEW: Final = 60.0
"""A time that lies closer may have passed by Scheduler's own clock, and it refuses times in the past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTarget:
    """Where one-time schedules live and what they may do."""

    group: str
    role_arn: str
    queue_arn: str
    """The runs queue; a schedule sends to it with the run as its group."""


class AwsTimers:
    """Implements `Timers`; what is due in more than `threshold` seconds goes to Scheduler."""

    def __init__(
        self,
        sqs: SQSClient,
        scheduler: EventBridgeSchedulerClient,
        *,
        queue_url: str,
        target: ScheduleTarget,
        clock: Clock,
        ids: Ids,
        threshold: float = SQS_DELAY_SECONDS,
    ) -> None:
        self._sqs = sqs
        self._scheduler = scheduler
        self._queue_url = queue_url
        self._target = target
        self._clock = clock
        self._ids = ids
        self._threshold = min(threshold, SQS_DELAY_SECONDS)

    def arm(self, run_id: str, due_at: float) -> None:
        timer = TimerFired(run_id=run_id, due_at=due_at, id=self._ids())
        delay = due_at - self._clock.now()
        if delay <= self._threshold:
            self.send(timer, delay=max(0.0, delay))
        elif not self._schedule(timer):
            self.send(timer, delay=min(delay, SQS_DELAY_SECONDS))

    def send(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        send_later(self._sqs, self._queue_url, envelope, delay)

    def _schedule(self, timer: TimerFired) -> bool:
        """Creates the schedule of this very timer, unless there is one; False if its time has passed."""
        fires_at = timer.due_at - SCHEDULE_LEAD
        if fires_at <= self._clock.now():
            return False
        try:
            with translated("EventBridge Scheduler"):
                self._scheduler.create_schedule(
                    Name=schedule_name(timer.run_id, timer.due_at),
                    GroupName=self._target.group,
                    ScheduleExpression=f"at({datetime.fromtimestamp(int(fires_at), UTC):%Y-%m-%dT%H:%M:%S})",
                    ScheduleExpressionTimezone="UTC",
                    FlexibleTimeWindow={"Mode": "OFF"},
                    ActionAfterCompletion="DELETE",
                    Target={
                        "Arn": self._target.queue_arn,
                        "RoleArn": self._target.role_arn,
                        "Input": to_body(timer),
                        "SqsParameters": {"MessageGroupId": timer.run_id},
                    },
                )
        except ClientError as error:
            match code_of(error):
                case "ConflictException":
                    return True
                case "ValidationException" if fires_at <= self._clock.now() + CLOCK_SKEW:
                    return False
                case _:
                    raise
        return True


def schedule_name(run_id: str, due_at: float) -> str:
    """Names the timer of a run and a moment: the same timer always has the same name, in 52 allowed characters."""
    return f"timer-{sha256(f'{run_id} {due_at!r}'.encode()).hexdigest()[:46]}"
