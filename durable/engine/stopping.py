"""When a run's code goes no further: somebody cancels the run, or its time is up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from durable.engine.opening import begun
from durable.errors import UnknownWorkflow

if TYPE_CHECKING:
    from durable.app import App
    from durable.model.entry import Kind
    from durable.model.run import Run

Ending = Literal["cancelled", "timed_out"]

LONGEST_REMAINDER: Final = 1e9
"""Deadlines are seconds since 1970, which passed this in 2001; no timeout is that long."""


@dataclass(frozen=True, slots=True)
class CancellationRecord:
    """What the entry of a graceful cancellation is written about."""

    kind: ClassVar[Kind] = "cancel"
    location: str = "cancel"
    mark: str = "^"
    fn: str | None = None
    branches: str | None = None


def verdict(run: Run, now: float) -> Ending | None:
    """What becomes of a run whose code is to go no further, once its steps are undone; None for others."""
    if run.cancel_requested == "compensate":
        return "cancelled"
    if run.deadline is not None and now >= run.deadline:
        return "timed_out"
    return None


def never_began(run: Run) -> bool:
    """Whether no turn has executed any of the run's code; turns that found it waiting for a slot were released cleanly."""
    return run.status == "pending" and run.epoch == run.clean_epoch + 1


def with_deadline(app: App, run: Run, now: float) -> Run:
    """The run with the moment at which it times out, if its workflow has a timeout.

    It counts from the first turn. Time in which the run is blocked does not count: its record has the rest meanwhile.
    """
    if run.deadline is not None:
        return run if run.deadline > LONGEST_REMAINDER else replace(run, deadline=now + run.deadline)
    try:
        timeout = app.find(run.workflow, run.version).timeout
    except UnknownWorkflow:
        return run  # it is going to be blocked
    return run if timeout is None else replace(run, deadline=begun(run) + timeout)


def remainder(run: Run, now: float) -> float | None:
    """What the record of a blocked run has in place of its deadline: the seconds that are left."""
    return None if run.deadline is None else max(0.0, run.deadline - now)
