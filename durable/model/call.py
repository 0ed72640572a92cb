"""A call of a remote step as its open entries record it: all that it takes to dispatch an attempt, and to judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from durable.model.lane import LaneClaim, Ticket
from durable.model.task import DONE, StepTask, TaskRow, task_id

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.run import Run

PICKUP_SECONDS: Final = 86_400.0
"""How long a call waits for a worker if nothing else is said: nobody may wait for ever."""

SLACK: Final = 5.0
"""So much later than a worker does a run give an attempt up: clocks differ, and the worker's own word is on its way."""

QUEUED_LOOK: Final = 60.0
"""An attempt that nobody has begun with is looked at no more often than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOrder:
    """The value of an entry that opens an attempt."""

    name: str
    """The remote step's."""
    queue: str
    input: str
    """JSON text: `{"args": [...], "kwargs": {...}}`."""
    key: str
    """The idempotency key."""
    timeout: float
    heartbeat: float | None = None
    pickup: float = PICKUP_SECONDS
    total: float | None = None
    """Seconds for all attempts and the pauses between them, from when the first was dispatched."""
    lane: LaneClaim | None = None
    """As the app had it when the attempt was opened."""

    def to_text(self) -> str:
        """The JSON text that is recorded."""
        return _ORDER.dump_json(self, exclude_defaults=True).decode()

    @property
    def shortest(self) -> float:
        """How soon after it was picked up an attempt may be overdue."""
        return self.timeout if self.heartbeat is None else min(self.timeout, self.heartbeat)


_ORDER: TypeAdapter[CallOrder] = TypeAdapter(CallOrder)


def order_from(text: str | None) -> CallOrder:
    """Reads what `to_text` wrote."""
    return _ORDER.validate_json(text or "")


def attempt_of(entry: Entry) -> int:
    """The attempt that an entry opens (`?k`) or tells the failure of (`@k`)."""
    return int(entry.mark[1:])


def task_id_of(opened: Entry) -> str:
    """The id of the attempt that the entry opens, and of the message with its result."""
    return task_id(opened.location, opened.epoch, attempt_of(opened))


def task_of(run: Run, opened: Entry, order: CallOrder) -> StepTask:
    """What a worker gets: the same, however often it is sent."""
    return StepTask(
        run_id=run.id, location=opened.location, epoch=opened.epoch, attempt=attempt_of(opened), queue=order.queue,
        name=order.name, input=order.input, dispatched_at=opened.at, timeout=order.timeout, heartbeat=order.heartbeat,
        idempotency_key=order.key, headers=run.headers, workflow=run.workflow,
        lane=None if order.lane is None else order.lane.spec.name,
    )  # fmt: skip


def ticket_of(task: StepTask, claim: LaneClaim, *, action: str) -> Ticket:
    """What waits in a lane for the attempt's turn."""
    return Ticket(
        holder=task.holder, action=action, arrived_at=task.dispatched_at, priority=claim.priority,
        fairness_key=claim.fairness_key,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Overdue:
    """An attempt that is given up."""

    why: str
    """For people."""


def first_look(order: CallOrder, opened_at: float) -> float:
    """The earliest moment at which an attempt may be overdue, whatever has become of it."""
    return opened_at + min(order.pickup, order.shortest) + SLACK


def judge(
    order: CallOrder, opened_at: float, row: TaskRow | None, now: float, *, queued: bool = False
) -> float | Overdue:
    """When to look again at an attempt without a result, or why nobody need.

    `queued` says that it waits for its turn in a lane: then nobody could have begun with it, and none of its times run.
    Otherwise a row without a pickup tells since when it could be picked up, and no row: since it was opened.
    """
    if row is not None and row.closed not in {None, DONE}:
        return Overdue(f"the attempt was closed: {row.closed}")
    if row is None or row.picked_up_at is None:
        since = opened_at if row is None or row.heartbeat_at is None else row.heartbeat_at
        return _judge_waiting(order, opened_at, None if queued else since, now)
    return _judge_running(order, row, row.picked_up_at, now)


def _judge_waiting(order: CallOrder, opened_at: float, since: float | None, now: float) -> float | Overdue:
    """The longer nobody has begun with it, the less often it is looked at: that costs a turn."""
    look = now + max(order.shortest, QUEUED_LOOK, (now - opened_at) / 10) + SLACK
    if since is None:
        return look
    end = since + order.pickup + SLACK
    if now >= end:
        return Overdue(f'no worker of queue "{order.queue}" has begun with it within {order.pickup:g} s')
    return min(end, look)


def _judge_running(order: CallOrder, row: TaskRow, picked_up_at: float, now: float) -> float | Overdue:
    end = picked_up_at + order.timeout + SLACK
    if now >= end:
        return Overdue(f"no result within {order.timeout:g} s of its pickup by {row.worker}")
    if order.heartbeat is None or row.closed == DONE:
        return end
    silent = (row.heartbeat_at or picked_up_at) + order.heartbeat + SLACK
    if now >= silent:
        return Overdue(f"no heartbeat within {order.heartbeat:g} s; its worker was {row.worker}")
    return min(end, silent)
