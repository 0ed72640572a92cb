"""One attempt at a remote step: the order that a worker gets, what came of it, and what is known of it meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic_core import to_json

from durable.errors import ErrorInfo

TaskFailure = Literal["critical", "rollback"]
"""Why a failure is not retried: the body said so, or it also wants its run undone."""

DONE: Final = "done"
"""Why an attempt is closed whose result has been told: it is on its way to the run."""


def task_id(location: str, epoch: int, attempt: int) -> str:
    """Names an attempt within its run; the result of the attempt is the message with this id."""
    return f"{location}:{epoch}:{attempt}"


def lane_holder(run_id: str, id: str) -> str:
    """Who holds the slot of a lane, or waits for one, while the attempt is under way."""
    return f"{run_id}|{id}"


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """An attempt, as far as telling its end goes."""

    run_id: str
    location: str
    id: str
    lane: str | None

    @property
    def holder(self) -> str:
        """Its name in its lane."""
        return lane_holder(self.run_id, self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTask:
    """All that a worker needs to perform one attempt and to tell its run."""

    run_id: str
    location: str
    epoch: int
    """That of the open entry."""
    attempt: int
    """1 for the first."""
    queue: str
    """The author's name for it, not that of a queue in SQS."""
    name: str
    """The remote step's."""
    input: str
    """JSON text: `{"args": [...], "kwargs": {...}}`."""
    dispatched_at: float
    timeout: float
    """Seconds for the body, from when it is picked up."""
    heartbeat: float | None
    """Longest silence of the body, in seconds."""
    idempotency_key: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    workflow: str = ""
    """That of the run, for the log of whoever performs it."""
    lane: str | None = None
    """The lane of which the attempt holds a slot until it ends."""

    @property
    def id(self) -> str:
        """Names the attempt within its run."""
        return task_id(self.location, self.epoch, self.attempt)

    @property
    def holder(self) -> str:
        """Its name in its lane."""
        return lane_holder(self.run_id, self.id)

    @property
    def attempt_ref(self) -> AttemptRef:
        """What it takes to tell how it ended."""
        return AttemptRef(self.run_id, self.location, self.id, self.lane)

    def to_text(self) -> str:
        """The body of a queue message."""
        return _TASK.dump_json(self).decode()


def input_text(args: list[Any], kwargs: Mapping[str, Any]) -> str:
    """`StepTask.input` for arguments that are plain JSON values already."""
    return to_json({"args": args, "kwargs": dict(kwargs)}).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """How an attempt ended: the body of a result message."""

    value: str | None = None
    """JSON text; None also for an error."""
    error: ErrorInfo | None = None
    retryable: bool = True
    """Of an error: whether another attempt may follow."""
    retry_after: float | None = None
    """Of an error: seconds until then, where the body said so."""
    failure: TaskFailure | None = None
    """Of an error that is not retried: why."""
    started_at: float
    """When the attempt was picked up first, seconds since 1970."""
    worker: str
    """For people: who performed it."""

    def to_text(self) -> str:
        """The JSON text of a result message."""
        return _OUTCOME.dump_json(self).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """What is known of an attempt while nobody knows its result; callbacks have rows too, under their location."""

    run_id: str
    id: str
    picked_up_at: float | None = None
    """When a worker began with it, the first of them."""
    worker: str = ""
    """The latest of them."""
    heartbeat_at: float | None = None
    """The latest sign of life; picking it up is one."""
    progress: str | None = None
    """JSON text of what the latest heartbeat that told any has told."""
    closed: str | None = None
    """Why its result is no longer wanted."""
    expires_at: float | None = None


_TASK: TypeAdapter[StepTask] = TypeAdapter(StepTask)
_OUTCOME: TypeAdapter[TaskOutcome] = TypeAdapter(TaskOutcome)


def task_from(text: str) -> StepTask:
    """Reads a queue message; raises pydantic's ValidationError (a ValueError) for anything else."""
    return _TASK.validate_json(text)


def outcome_from(text: str) -> TaskOutcome:
    """Reads a result message; raises pydantic's ValidationError (a ValueError) for anything else."""
    return _OUTCOME.validate_json(text)
