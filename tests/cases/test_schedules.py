"""Troubles with the one-time schedules behind timers that users of such systems have had, tried on this one.

Schedules that start runs are not in this version.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from durable import App, Context, NotAvailable, Signal, every
from durable.adapters.memory import MemoryTimers, VirtualClock
from durable.adapters.timers import AwsTimers, ScheduleTarget
from durable.errors import StoreUnavailable
from durable.local.template import Template
from durable.testing import TestEnvironment
from tests.contract.worlds import AwsWorld

GO = Signal("go", int)
app = App("schedules")


@app.workflow
async def sleeper(ctx: Context) -> str:
    await ctx.sleep("2h")
    return "awake"


@app.workflow
async def patient(ctx: Context) -> int:
    for _ in range(3):
        await ctx.wait_for_signal(GO, timeout="5h")
    return 3


def test_SCH_01_SCH_02_SCH_03_SCH_05_schedules_that_start_runs_are_refused_as_not_available() -> None:
    with pytest.raises(NotAvailable, match=r"app\.schedule"):
        App("later").schedule("nightly", every("1 day"), sleeper)


NAMES = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::Scheduler::ScheduleGroup": "Name",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::IAM::Role": "RoleName",
    "AWS::Events::Rule": "Name",
}


def test_SCH_04_every_name_in_the_template_carries_the_stack(template: Template) -> None:
    named = [
        (logical, properties[name])
        for kind, name in NAMES.items()
        for logical, properties in template.of_type(kind).items()
        if name in properties
    ]
    assert named
    assert [logical for logical, name in named if "${AWS::StackName}" not in name["Fn::Sub"]] == []


def test_SCH_06_a_run_has_one_schedule_at_a_time_and_none_is_left_in_the_end() -> None:
    env = TestEnvironment(app)
    timers = env.world.services.timers
    assert isinstance(timers, MemoryTimers)
    for n in range(100):
        env.start(patient, id=f"r{n}")
    env.run_until_idle()
    for n in range(100):
        if n % 3 == 0:
            env.cancel(f"r{n}", ("graceful", "terminate")[n % 2])
        for _ in range(3 if n % 3 == 1 else 0):
            env.send(f"r{n}", GO, 1)
    env.run_until_idle()
    assert len(timers.schedules) <= 100
    env.advance(hours=16)
    assert timers.schedules == []
    assert all(run.ended for run in env.world.services.memory.runs)


def test_SCH_07_our_timers_send_what_makes_a_schedule_delete_itself(aws: AwsWorld) -> None:
    sent: list[Any] = []
    events = aws.clients.scheduler.meta.events
    events.register("before-call.scheduler.CreateSchedule", lambda params, **_: sent.append(params["body"]))
    aws.ports.timers.arm("sch-07", aws.ports.clock.now() + 7_200)
    (body,) = sent
    assert b'"ActionAfterCompletion": "DELETE"' in (body if isinstance(body, bytes) else body.encode())


def test_SCH_08_a_timer_that_fires_for_nobody_does_nothing() -> None:
    env = TestEnvironment(app)
    env.start(sleeper, id="r")
    env.run_until_idle()
    env.terminate("r")
    env.run_until_idle()
    env.delete("r")
    calls = len(env.calls)
    env.advance(hours=3)
    assert set(env.calls[calls:]) <= {"timers.send", "store.acquire"}
    assert not env.world.services.memory.runs


def test_SCH_09_a_timer_that_is_set_twice_is_one_schedule(aws: AwsWorld) -> None:
    due_at = aws.ports.clock.now() + 7_200
    before = len(aws.schedules())
    for _ in range(2):  # the reply of the first was lost
        aws.ports.timers.arm("sch-09", due_at)
    assert len(aws.schedules()) == before + 1


@dataclass
class Refusing:
    """A client of Scheduler that says no, and one of SQS that remembers."""

    code: str
    delays: list[int] = field(default_factory=list)

    def create_schedule(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, "CreateSchedule")

    def send_message(self, *, DelaySeconds: int, **_: Any) -> None:  # noqa: N803 - boto3's name
        self.delays.append(DelaySeconds)


def timers_with(client: Any, clock: VirtualClock, threshold: float = 900) -> AwsTimers:
    target = ScheduleTarget(group="g", role_arn="r", queue_arn="q")
    return AwsTimers(client, client, queue_url="u", target=target, clock=clock, ids=lambda: "id", threshold=threshold)


@pytest.mark.parametrize("code", ["ThrottlingException", "ServiceQuotaExceededException"])
def test_SCH_09_a_throttled_schedule_is_asked_for_again_by_another_turn(code: str) -> None:
    clock = VirtualClock()
    with pytest.raises(StoreUnavailable):
        timers_with(Refusing(code), clock).arm("r", clock.now() + 7_200)
    env = TestEnvironment(app)
    env.faults.fail_next_call("timers.arm")
    before = env.now
    assert env.start(sleeper).result() == "awake"
    assert env.now - before <= timedelta(hours=2, seconds=10)
    assert env.repairs == 0


def test_TMR_05_a_time_that_schedules_refuse_as_past_is_waited_for_by_a_queue() -> None:
    clock = VirtualClock()
    client = Refusing("ValidationException")
    timers_with(client, clock, threshold=90).arm("r", clock.now() + 100)  # 40 s ahead, by our clock
    assert client.delays == [100]


def test_SCH_10_a_schedule_that_never_fires_is_made_up_for_and_the_alarm_knows(template: Template) -> None:
    env = TestEnvironment(app)
    handle = env.start(sleeper)
    env.run_until_idle()
    env.faults.drop_next()
    before = env.now
    assert handle.result() == "awake"
    assert env.now - before <= timedelta(hours=2, minutes=2)
    assert env.repairs == 1
    assert "OverdueRunsAlarm" in template.of_type("AWS::CloudWatch::Alarm")
