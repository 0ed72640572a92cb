"""What a step body can ask about itself while it runs."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime

_current: ContextVar[StepContext] = ContextVar("durable_step")


class StepContext:
    """One attempt of one step."""

    __slots__ = ("_cancelled", "_ends", "attempt", "idempotency_key", "location", "run_id")

    def __init__(self, *, run_id: str, location: str, attempt: int, idempotency_key: str, ends: float) -> None:
        self.run_id = run_id
        self.location = location
        self.attempt = attempt
        """1 for the first attempt."""
        self.idempotency_key = idempotency_key
        """The same for every attempt of this step: hand it to the service that the step calls."""
        self._ends = ends
        self._cancelled = False

    @property
    def deadline(self) -> datetime:
        """When the attempt's result stops counting, UTC."""
        return datetime.fromtimestamp(self._ends, UTC)

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted: it timed out, or the workflow cancelled it."""
        return self._cancelled

    def cancel(self) -> None:
        """Tells the body that its result is no longer wanted; it cannot be stopped."""
        self._cancelled = True


def step_context() -> StepContext:
    """The attempt that is running in this thread or task; LookupError outside a step."""
    try:
        return _current.get()
    except LookupError:
        message = "step_context() was called outside a step: there is no attempt to tell about"
        raise LookupError(message) from None


def enter_step(context: StepContext) -> None:
    """Makes the attempt known to the body that runs next in this context."""
    _current.set(context)
