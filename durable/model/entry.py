"""One item of a run's history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from durable.errors import ErrorInfo
from durable.model.message import StoredMessage

Kind = Literal[
    "step", "sleep", "wait", "send", "call", "update", "loop", "transact", "join", "race", "map", "block", "child", "callback",
    "webhook", "review", "entity", "version", "removed", "state", "stream", "cancel", "checkpoint", "continuation", "start",
    "close",
]  # fmt: skip

FailureKind = Literal["critical", "timeout", "exhausted", "rollback"]


@dataclass(frozen=True, slots=True)
class Compensation:
    """How a step is undone."""

    fn: str
    """`module:qualname` of a function."""
    args: str
    """JSON text of what it is called with: `{"args": [...], "kwargs": {...}}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Written once, never updated: the result of an operation, or a fact about an attempt at it.

    `location` and `mark` together are the item's key. An empty mark is a result; `?k` an operation that is open;
    `@k` the failed attempt k of a step, or the start of an at-most-once attempt; `~i` a loop's state before iteration i;
    `!` the outcome of undoing what the location did, and `!@k` a failed attempt at that; `^` a cancellation, whose
    value lists the keys of the operations that it cancels.
    """

    location: str
    mark: str = ""
    kind: Kind
    epoch: int
    n: int
    """Order of record: (epoch, n). Each epoch counts 1, 2, 3 ... over all its items."""
    at: float
    """When it was recorded, seconds since 1970; never smaller than that of an entry before it."""
    fn: str | None = None
    """Qualified name of the declared function, checked at every claim."""
    branches: str | None = None
    """Keys of the join or race that the operation stands in."""
    value: str | None = None
    """JSON text; None is the value None."""
    error: ErrorInfo | None = None
    failure: FailureKind | None = None
    attempts: int = 0
    started_at: float | None = None
    retry_at: float | None = None
    input_digest: str | None = None
    messages: tuple[StoredMessage, ...] = ()
    """What a wait consumed: recording the entry is what consumes it."""

    compensation: Compensation | None = None
    """How the step is undone, if it can be."""

    carried: tuple[Entry, ...] = ()
    """Results of ephemeral steps, written inside this item instead of as items of their own; their `n` come before it."""

    @property
    def key(self) -> str:
        """Unique within the run."""
        return self.location + self.mark

    @property
    def status(self) -> Literal["open", "completed", "failed"]:
        """How what it records ended: a result, an error, a failed attempt; or that it has begun."""
        if self.error is not None:
            return "failed"
        return "open" if self.mark.startswith(("?", "@")) else "completed"

    @property
    def recorded_at(self) -> datetime:
        """`at`, in UTC."""
        return datetime.fromtimestamp(self.at, UTC)

    @property
    def scope(self) -> str:
        """The scope that the operation stands in: its location without its own name."""
        return self.location.rpartition("/")[0]

    @property
    def order(self) -> tuple[int, int]:
        """Sorts entries by the order in which they were recorded."""
        return (self.epoch, self.n)
