"""Queues in memory that keep the rules of SQS: order, visibility, redelivery, de-duplication, dead letters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from threading import Lock
from typing import TYPE_CHECKING, Final

from durable.adapters.sizes import check_envelope
from durable.model.envelope import to_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from durable.model.envelope import Envelope
    from durable.ports import Clock

BATCH: Final = 10
DEDUPLICATION_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One delivery of a queue message; its receipt acknowledges this delivery only."""

    receipt: str
    body: str
    sent_at: float
    sequence: str
    receive_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A message in the queue, as it is now."""

    sequence: str
    group: str | None
    body: str
    sent_at: float
    visible_at: float
    receive_count: int = 0
    receipt: str | None = None
    """Of the latest delivery; it is in flight until `visible_at`."""

    def in_flight(self, now: float) -> bool:
        """Whether somebody has received it and may still acknowledge it."""
        return self.receipt is not None and self.visible_at > now


class MemoryQueue:
    """The part that FIFO and standard queues share; with groups it is FIFO.

    Time passes only by the clock that is given. Every method is atomic.
    """

    def __init__(self, clock: Clock, *, fifo: bool, visibility_timeout: float, max_receives: int) -> None:
        self._clock = clock
        self._fifo = fifo
        self._visibility_timeout = visibility_timeout
        self._max_receives = max_receives
        self._lock = Lock()
        self._messages: dict[str, Queued] = {}
        self._visible: dict[str, None] = {}
        """In the order in which they became so."""
        self._hidden: set[str] = set()
        self._moments: list[tuple[float, str]] = []
        """A heap of when hidden messages become visible; a message may have been placed anew since."""
        self._bodies: dict[tuple[str, str], float] = {}
        self._dead: list[Queued] = []
        self._sent = 0
        self._deliveries = 0

    def enqueue(self, body: str, *, group: str | None = None, delay: float = 0.0) -> None:
        """Accepts a message as it is, without de-duplication: also how a test makes a duplicate."""
        with self._lock:
            self._enqueue(body, group, delay)

    def receive(self, max_messages: int = BATCH) -> Sequence[Received]:
        """Takes visible messages, at most ten, and hides them for the visibility timeout.

        FIFO: in the order of sending, and none of a group of which an earlier delivery is still in flight. Standard:
        in the order in which they became visible. One that was received too often goes to the dead letters instead.
        """
        with self._lock:
            now = self._clock.now()
            self._uncover(now)
            return [self._deliver(message, now) for message in self._take(min(max_messages, BATCH))]

    def acknowledge(self, receipt: str) -> bool:
        """Deletes the message of a delivery. A receipt that a later delivery has replaced does nothing (False).

        A FIFO queue also refuses the receipt of a delivery whose visibility timeout has passed.
        """
        with self._lock:
            message = self._holder(receipt)
            if message is None:
                return False
            self._remove(message.sequence)
            return True

    def change_visibility(self, receipt: str, seconds: float) -> bool:
        """Hides the message of a delivery for so many seconds from now; False if the receipt is no longer good."""
        with self._lock:
            message = self._holder(receipt)
            if message is None:
                return False
            self._place(replace(message, visible_at=self._clock.now() + seconds))
            return True

    def release(self, receipt: str) -> bool:
        """Makes the message of a delivery visible again, at once."""
        return self.change_visibility(receipt, 0)

    def next_visible_at(self) -> float | None:
        """The moment from which `receive` has something to give (now, if it already has); None if the queue is empty."""
        with self._lock:
            now = self._clock.now()
            self._uncover(now)
            if next(self._receivable(), None):
                return now
            return self._moments[0][0] if self._moments else None

    @property
    def pending(self) -> Sequence[Queued]:
        """Everything not yet acknowledged, delayed and in flight included, in the order of sending."""
        with self._lock:
            return list(self._messages.values())

    @property
    def dead_letters(self) -> Sequence[Queued]:
        """What was received too often, in the order in which it was given up."""
        with self._lock:
            return list(self._dead)

    def change(self, sequence: str, change: Callable[[Queued], Queued | None]) -> None:
        """Replaces a pending message by another, or removes it (None): how a test loses, delays and reorders."""
        with self._lock:
            changed = change(self._messages[sequence])
            if changed is None:
                self._remove(sequence)
            else:
                self._place(changed)

    def _enqueue(self, body: str, group: str | None, delay: float) -> None:
        now = self._clock.now()
        self._sent += 1
        sequence = f"{self._sent:020d}"
        self._place(
            Queued(
                sequence=sequence,
                group=group,
                body=body,
                sent_at=int(now * 1000) / 1000,  # SentTimestamp has whole milliseconds
                visible_at=now + delay,
            )
        )

    def _enqueue_once(self, body: str, group: str) -> None:
        now = self._clock.now()
        while self._bodies and next(iter(self._bodies.values())) <= now:
            del self._bodies[next(iter(self._bodies))]
        if (group, body) in self._bodies:
            return
        self._bodies[group, body] = now + DEDUPLICATION_SECONDS
        self._enqueue(body, group, 0.0)

    def _place(self, message: Queued) -> None:
        self._messages[message.sequence] = message
        self._visible.pop(message.sequence, None)
        self._hidden.add(message.sequence)
        heappush(self._moments, (message.visible_at, message.sequence))

    def _remove(self, sequence: str) -> Queued:
        self._visible.pop(sequence, None)
        self._hidden.discard(sequence)
        return self._messages.pop(sequence)

    def _uncover(self, now: float) -> None:
        while self._moments:
            moment, sequence = self._moments[0]
            message = self._messages.get(sequence)
            current = message is not None and message.visible_at == moment
            if current and moment > now:
                return
            heappop(self._moments)
            if current:
                self._hidden.discard(sequence)
                self._visible[sequence] = None

    def _receivable(self) -> Iterator[Queued]:
        if not self._fifo:
            return (self._messages[sequence] for sequence in self._visible)
        locked = {self._messages[sequence].group for sequence in self._hidden}
        return (message for message in self._messages.values() if message.group not in locked)

    def _take(self, limit: int) -> Sequence[Queued]:
        taken: list[Queued] = []
        worn: list[Queued] = []
        for message in self._receivable():
            if len(taken) == limit:
                break
            (worn if message.receive_count >= self._max_receives else taken).append(message)
        self._dead += [self._remove(message.sequence) for message in worn]
        return taken

    def _deliver(self, message: Queued, now: float) -> Received:
        self._deliveries += 1
        delivered = replace(
            message,
            receipt=f"{message.sequence}-{self._deliveries}",
            receive_count=message.receive_count + 1,
            visible_at=now + self._visibility_timeout,
        )
        self._place(delivered)
        return Received(
            receipt=delivered.receipt or "",
            body=message.body,
            sent_at=message.sent_at,
            sequence=message.sequence if self._fifo else "",
            receive_count=delivered.receive_count,
        )

    def _holder(self, receipt: str) -> Queued | None:
        message = self._messages.get(receipt.partition("-")[0])
        if message is None or message.receipt != receipt:
            return None
        if self._fifo and not message.in_flight(self._clock.now()):
            return None
        return message


class MemoryRunQueue(MemoryQueue):
    """Implements `RunQueue` as a FIFO queue: one group a run, equal bodies dropped for five minutes."""

    def __init__(self, clock: Clock, *, visibility_timeout: float = 150.0, max_receives: int = 10) -> None:
        super().__init__(clock, fifo=True, visibility_timeout=visibility_timeout, max_receives=max_receives)

    def send(self, envelope: Envelope) -> None:
        body = to_body(envelope)
        check_envelope(envelope, body)
        self.accept(body, group=envelope.run_id)

    def accept(self, body: str, *, group: str) -> None:
        """What the queue does with a body, whoever sends it (a schedule, for one)."""
        with self._lock:
            self._enqueue_once(body, group)
