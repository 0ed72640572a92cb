"""What the timers on AWS do with Scheduler's answers."""

from typing import Any, cast

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from durable.adapters.memory import VirtualClock
from durable.adapters.timers import AwsTimers, ScheduleTarget, schedule_name
from durable.errors import StoreUnavailable

CONFIG = Config(retries={"total_max_attempts": 1})


class Aws:
    def __init__(self, threshold: float = 900) -> None:
        session = botocore.session.get_session()
        sqs = session.create_client("sqs", "eu-central-1", config=CONFIG)
        scheduler = session.create_client("scheduler", "eu-central-1", config=CONFIG)
        self.sqs, self.scheduler = Stubber(sqs), Stubber(scheduler)
        self.sqs.activate()
        self.scheduler.activate()
        self.clock = VirtualClock(1_796_000_000.5)
        self.timers = AwsTimers(
            cast("Any", sqs),
            cast("Any", scheduler),
            queue_url="https://sqs/timers",
            target=ScheduleTarget(group="g", role_arn="arn:role", queue_arn="arn:queue"),
            clock=self.clock,
            ids=lambda: "id",
            threshold=threshold,
        )

    def expects_message(self, delay: int) -> None:
        expected = {"QueueUrl": "https://sqs/timers", "MessageBody": ANY, "DelaySeconds": delay}
        self.sqs.add_response("send_message", {"MessageId": "m", "MD5OfMessageBody": "0"}, expected)

    def refuses_schedule(self, code: str, status: int = 400) -> None:
        self.scheduler.add_client_error("create_schedule", code, http_status_code=status)

    def arm(self, seconds: float) -> None:
        self.timers.arm("run-1", self.clock.now() + seconds)
        self.sqs.assert_no_pending_responses()
        self.scheduler.assert_no_pending_responses()


def test_a_schedule_that_exists_is_this_very_timer() -> None:
    aws = Aws()
    aws.refuses_schedule("ConflictException")
    aws.arm(5000)


def test_a_time_that_has_passed_for_scheduler_becomes_a_message() -> None:
    aws = Aws(threshold=60)
    aws.refuses_schedule("ValidationException")
    aws.expects_message(115)
    aws.arm(115)


def test_a_timer_too_close_for_a_schedule_is_a_message() -> None:
    aws = Aws(threshold=5)
    aws.expects_message(30)
    aws.arm(29.25)


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", StoreUnavailable), ("ValidationException", ClientError)]
)
def test_other_refusals_are_raised(code: str, error: type[Exception]) -> None:
    aws = Aws()
    aws.refuses_schedule(code)
    with pytest.raises(error):
        aws.arm(5000)


def test_names_of_schedules_are_short_and_name_run_and_moment() -> None:
    names = {schedule_name(run_id, due_at) for run_id in ("a", "a" * 128) for due_at in (1.0, 1.5)}
    assert len(names) == 4
    assert all(len(name) <= 64 and name.replace("-", "").isalnum() for name in names)
    assert schedule_name("a", 1.0) == schedule_name("a", 1.0)
