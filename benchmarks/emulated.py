"""A deployment for counting: the AWS adapters over moto, virtual time, and queues in memory that deliver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from durable.adapters.memory import MemoryRunQueue, MemoryTimers, VirtualClock
from durable.adapters.timers import AwsTimers, ScheduleTarget
from durable.aws import aws_ports, make_clients
from durable.client import Client
from durable.engine.options import EngineOptions
from durable.engine.orchestrator import Delivery, Orchestrator
from durable.local.provision import provision
from durable.model.delivery import TaskDelivery
from durable.settings import Settings
from durable.testing.counting import RequestCounter

if TYPE_CHECKING:
    from durable.app import App
    from durable.model.envelope import Envelope
    from durable.ports import RunQueue, Timers

TEMPLATE: Final = Path(__file__).parents[1] / "template.yaml"
REGION: Final = "eu-central-1"
INVOCATION_SECONDS: Final = 120.0


class MirroredRuns(MemoryRunQueue):
    """Sends to SQS, where it is counted, and delivers from memory, where time is virtual."""

    def __init__(self, clock: VirtualClock, real: RunQueue) -> None:
        super().__init__(clock)
        self._real = real

    def send(self, envelope: Envelope) -> None:
        self._real.send(envelope)
        super().send(envelope)


class MirroredTimers(MemoryTimers):
    """The same for timers; what `arm` asks of SQS or Scheduler is counted once."""

    def __init__(self, clock: VirtualClock, ids: Any, runs: MirroredRuns, real: Timers) -> None:
        super().__init__(clock, ids, runs)
        self._real = real
        self._arming = False

    def arm(self, run_id: str, due_at: float) -> None:
        self._real.arm(run_id, due_at)
        self._arming = True
        super().arm(run_id, due_at)
        self._arming = False

    def send(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        if not self._arming:
            self._real.send(envelope, delay=delay)
        super().send(envelope, delay=delay)


class Emulated:
    """Inside `moto.mock_aws()`: ports, a counter over their clients, a client and one warm orchestrator."""

    def __init__(self, app: App[Any], *, stack: str) -> None:
        clients = make_clients(region=REGION)
        self._sqs = clients.sqs
        stood = provision(TEMPLATE, stack=stack, region=REGION)
        self.settings = Settings.from_environment(stood.functions["OrchestratorFunction"].environment)
        self.clock = VirtualClock()
        real = aws_ports(self.settings, clients)
        timers = AwsTimers(
            clients.sqs,
            clients.scheduler,
            queue_url=self.settings.timers_queue_url,
            target=ScheduleTarget(
                group=self.settings.schedule_group,
                role_arn=self.settings.schedule_role_arn,
                queue_arn=self.settings.runs_queue_arn,
            ),
            clock=self.clock,
            ids=real.new_id,
        )
        self.runs = MirroredRuns(self.clock, real.runs)
        self.timers = MirroredTimers(self.clock, real.new_id, self.runs, timers)
        self.ports = replace(real, runs=self.runs, timers=self.timers, clock=self.clock)
        self.counter = RequestCounter(clients.dynamodb, self.settings.table, clients.sqs, clients.scheduler)
        self.client = Client(app, self.ports)
        # moto's tables are not thread-safe: one run, and one step, at a time.
        options = EngineOptions(parallel_runs=1, parallel_steps=1)
        self._orchestrator = Orchestrator(app, self.ports, options=options)

    def deliver(self) -> bool:
        """Handles what the queues give now; False if they give nothing."""
        self.timers.fire_schedules()
        for queue in (self.runs, self.timers):
            batch = queue.receive()
            if batch:
                self._orchestrator.process(
                    [
                        Delivery(id=got.receipt, body=got.body, arrived_at=got.sent_at, sequence=got.sequence)
                        for got in batch
                    ],
                    remaining=INVOCATION_SECONDS,
                )
                for got in batch:
                    queue.acknowledge(got.receipt)
                return True
        return False

    def receive_tasks(self) -> list[TaskDelivery]:
        """Takes what was sent to workers, uncounted."""
        with self.counter.paused():
            reply = self._sqs.receive_message(QueueUrl=self.settings.steps_queue_url or "", MaxNumberOfMessages=10)
            messages = reply.get("Messages", [])
            for message in messages:
                receipt = message.get("ReceiptHandle", "")
                self._sqs.delete_message(QueueUrl=self.settings.steps_queue_url or "", ReceiptHandle=receipt)
        return [TaskDelivery(id=m.get("MessageId", ""), body=m.get("Body", ""), receive_count=1) for m in messages]

    def settle_down(self) -> None:
        """Handles all that is due now."""
        while self.deliver():
            pass

    def skip(self) -> bool:
        """Moves time to the next delivery and handles all that is due then; False if there is none."""
        moments = (self.runs.next_visible_at(), self.timers.next_visible_at(), self.timers.next_schedule_at())
        following = [moment for moment in moments if moment is not None]
        if not following:
            return False
        self.clock.advance_to(min(following))
        self.settle_down()
        return True
