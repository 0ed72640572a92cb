"""What a step body can ask about itself while it runs."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - part of the public type

_current: ContextVar[StepContext] = ContextVar("durable_step")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """One attempt of one step."""

    run_id: str
    location: str
    attempt: int
    """1 for the first attempt."""
    idempotency_key: str
    """The same for every attempt of this step: hand it to the service that the step calls."""
    deadline: datetime
    """When the attempt's result stops counting."""
    _cancelled: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted: it timed out, or the workflow cancelled it."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Tells the body that its result is no longer wanted; it cannot be stopped."""
        self._cancelled.set()


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
