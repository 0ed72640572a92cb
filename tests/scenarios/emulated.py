"""A test environment over emulated AWS: DynamoDB and the runs queue are real to the adapters, time and timers are virtual."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from durable.adapters.memory import MemoryStepQueue, MemoryTimers, Received, VirtualClock
from durable.adapters.sqs import SqsRunQueue
from durable.model.envelope import Envelope, from_body, to_body
from durable.testing.services import VISIBILITY_SECONDS, SeededIds, Services
from tests.contract.worlds import AwsWorld

NAMES = (f"runs-{n}" for n in count())


@dataclass
class InFlight:
    received: Received
    visible_at: float


class EmulatedRunQueue:
    """SQS counts visibility in real time, and so it is kept here; all else is the emulator's: order, groups, duplicates."""

    def __init__(self, world: AwsWorld, clock: VirtualClock) -> None:
        self._sqs = world.clients.sqs
        attributes: Any = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        self._url = self._sqs.create_queue(QueueName=f"{next(NAMES)}.fifo", Attributes=attributes)["QueueUrl"]
        self._queue = SqsRunQueue(world.clients.sqs, self._url)
        self._clock = clock
        self._number = 0
        self._sent_at: dict[str, float] = {}
        self._ready: list[Received] = []
        self._in_flight: dict[str, InFlight] = {}

    def send(self, envelope: Envelope) -> None:
        self._sent_at.setdefault(to_body(envelope), self._clock.now())
        self._queue.send(envelope)

    def accept(self, body: str, *, group: str) -> None:
        del group
        self.send(from_body(body))

    def receive(self, max_messages: int = 10) -> Sequence[Received]:
        self._fetch()
        given, self._ready = self._ready[:max_messages], self._ready[max_messages:]
        for one in given:
            self._in_flight[one.receipt] = InFlight(one, self._clock.now() + VISIBILITY_SECONDS)
        return given

    def acknowledge(self, receipt: str) -> bool:
        self._in_flight.pop(receipt)
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)
        return True

    def change_visibility(self, receipt: str, seconds: float) -> bool:
        self._in_flight[receipt].visible_at = self._clock.now() + seconds
        return True

    def next_visible_at(self) -> float | None:
        self._fetch()
        if self._ready:
            return self._clock.now()
        return min((one.visible_at for one in self._in_flight.values()), default=None)

    @property
    def pending(self) -> Sequence[Received]:
        self._fetch()
        return [*self._ready, *(one.received for one in self._in_flight.values())]

    def _fetch(self) -> None:
        for receipt, one in list(self._in_flight.items()):
            if one.visible_at <= self._clock.now():
                del self._in_flight[receipt]
                self._sqs.change_message_visibility(QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=0)
        reply = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=3600,
        )
        self._ready += [self._received(message) for message in reply.get("Messages", [])]

    def _received(self, message: Any) -> Received:
        self._number += 1  # moto gives no sequence numbers
        return Received(
            receipt=message["ReceiptHandle"],
            body=message["Body"],
            sent_at=self._sent_at[message["Body"]],
            sequence=f"{self._number:020d}",
            receive_count=1,
        )


def emulated(world: AwsWorld) -> Services:
    """Over an empty table and a new queue."""
    world.clear_table()
    clock = VirtualClock()
    new_id = SeededIds(clock)
    runs: Any = EmulatedRunQueue(world, clock)
    timers = MemoryTimers(clock, new_id, runs, visibility_timeout=VISIBILITY_SECONDS)
    steps = MemoryStepQueue(clock, visibility_timeout=VISIBILITY_SECONDS)
    return Services(
        clock=clock,
        store=world.store,
        runs=runs,
        timers=timers,
        new_id=new_id,
        steps=steps,
        blobs=world.ports.blobs,
    )
