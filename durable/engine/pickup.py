"""The moment at which a worker takes an attempt: what it is, whether it is still wanted, and how long it may take."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from durable.engine.reporting import failed, leave_lane, report
from durable.errors import PayloadUnreadable, StepTimeout, StoreUnavailable
from durable.model.limits import TASK_KEPT_SECONDS
from durable.model.task import task_from

if TYPE_CHECKING:
    from durable.model.delivery import TaskDelivery
    from durable.model.task import StepTask
    from durable.ports import Ports

log = logging.getLogger("durable")

POLL_SECONDS: Final = 3.0
"""Longest wait of one request for a task: shorter than the time after which clients give a request up."""


@dataclass(frozen=True, slots=True)
class PickedUp:
    """The attempt is the worker's."""

    at: float
    """When it was picked up first, seconds since 1970: its time counts from then."""
    left: float
    """Seconds."""


def received(ports: Ports, delivery: TaskDelivery) -> StepTask | None:
    """The task that was delivered; None where it cannot be read, now or ever: then its queue delivers it again."""
    try:
        return ports.texts.task(task_from(delivery.body))
    except ValueError:  # its text may be anybody's secret: it stays out of the log
        log.warning("message %s is no task; the queue gives it to its dead letters", delivery.id)
    except (PayloadUnreadable, StoreUnavailable) as problem:
        log.warning("message %s comes back: %s", delivery.id, problem)
    return None


def pick_up(ports: Ports, task: StepTask, worker: str) -> PickedUp | None:
    """Notes who performs the attempt. None where nothing is left to do, and all that there was has been done."""
    now = ports.clock.now()
    expires_at = now + task.timeout + TASK_KEPT_SECONDS
    row = ports.store.start_task(task.run_id, task.id, worker=worker, now=now, expires_at=expires_at)
    if row.closed is not None:
        log.info("run %s: %s is not wanted any more: %s", task.run_id, task.id, row.closed)
        leave_lane(ports, task.attempt_ref)
        return None
    at = now if row.picked_up_at is None else row.picked_up_at
    left = at + task.timeout - now
    if left <= 0:
        report(ports, task.attempt_ref, failed(StepTimeout(task.timeout), started_at=at, worker=worker))
        return None
    return PickedUp(at, left)
