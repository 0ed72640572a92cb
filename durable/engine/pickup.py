"""The moment at which a worker takes an attempt: is it still wanted, and how long may it take?"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from durable.engine.reporting import failed, leave_lane, report
from durable.errors import StepTimeout
from durable.model.limits import TASK_KEPT_SECONDS

if TYPE_CHECKING:
    from durable.model.task import StepTask
    from durable.ports import Ports

log = logging.getLogger("durable")


@dataclass(frozen=True, slots=True)
class PickedUp:
    """The attempt is the worker's."""

    at: float
    """When it was picked up first, seconds since 1970: its time counts from then."""
    left: float
    """Seconds."""


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
