"""How an attempt at a remote step ends for its run: as a message with the attempt's id, of which the first counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable import failures
from durable.engine.retries import asked_delay
from durable.errors import LimitExceeded, Misuse, NonRetryableError, NotStorable, RetryAfter, RollbackError
from durable.lanes import leave
from durable.model.envelope import Deliver
from durable.model.task import TaskOutcome

if TYPE_CHECKING:
    from durable.model.task import AttemptRef
    from durable.ports import Ports


def failed(error: BaseException, *, started_at: float, worker: str) -> TaskOutcome:
    """The outcome of a body that raised: what the body may decide is decided here, the rest is the workflow's."""
    info = failures.record(error)
    match error:
        case RollbackError():
            return TaskOutcome(error=info, retryable=False, failure="rollback", started_at=started_at, worker=worker)
        case NonRetryableError() | Misuse():
            return TaskOutcome(error=info, retryable=False, failure="critical", started_at=started_at, worker=worker)
        case RetryAfter():
            return TaskOutcome(error=info, retry_after=asked_delay(error), started_at=started_at, worker=worker)
        case _:
            return TaskOutcome(error=info, started_at=started_at, worker=worker)


def unusable(error: NotStorable | LimitExceeded, *, started_at: float, worker: str) -> TaskOutcome:
    """The outcome of a body whose result cannot be kept: another attempt would give the same."""
    info = failures.record(error)
    return TaskOutcome(error=info, retryable=False, failure="critical", started_at=started_at, worker=worker)


def report(ports: Ports, attempt: AttemptRef, outcome: TaskOutcome) -> None:
    """Tells the run, then gives up the attempt's slot. A result that is too large for a message fails the step."""
    try:
        tell(ports, attempt, outcome)
    except LimitExceeded as error:
        tell(ports, attempt, unusable(error, started_at=outcome.started_at, worker=outcome.worker))
    leave_lane(ports, attempt)


def tell(ports: Ports, attempt: AttemptRef, outcome: TaskOutcome) -> None:
    """Tells the run. Twice is harmless: it consumes one message of an id. Raises LimitExceeded."""
    body = outcome.to_text()
    ports.runs.send(Deliver(run_id=attempt.run_id, id=attempt.id, name=attempt.location, kind="result", body=body))


def leave_lane(ports: Ports, attempt: AttemptRef) -> None:
    """Lets the next one in where the attempt holds a slot."""
    if attempt.lane is not None:
        leave(ports, attempt.lane, attempt.holder)
