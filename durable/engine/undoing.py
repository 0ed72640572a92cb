"""The undo of one step, as far as attempts at it and records of it are concerned."""

from __future__ import annotations

import contextvars
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final

from durable.ops.undo import call_of
from durable.options import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from durable.model.entry import Compensation, Entry, Kind
    from durable.model.packages import Packages

LONGEST: Final = 30.0
"""Timeout of one attempt, in seconds."""

OUTCOME: Final = "!"
"""Marks the entry that tells how the undo of its location has ended."""


class Undo:
    """The undo of one step, as far as attempts at it are concerned."""

    kind: ClassVar[Kind] = "step"
    mark = OUTCOME
    dead = False
    compensation: Compensation | None = None
    """An undo is not undone."""

    def __init__(
        self, run_id: str, step: Entry, compensation: Compensation, entries: Iterable[Entry], *, longest: float,
        packages: Packages,
    ) -> None:  # fmt: skip
        self.run_id = run_id
        self.location = step.location
        self.branches = step.branches
        self.fn: str | None = compensation.fn.rpartition(":")[2]
        # Half of what an invocation has fits into the next one for sure, however short the function's timeout is.
        self.policy = Step(retries=5, retry_on_timeout=True, timeout=min(LONGEST, longest / 2))
        self.context = contextvars.Context()
        self._step = step
        self._compensation = compensation
        self._packages = packages
        own = (e for e in entries if e.location == step.location and e.order > step.order)
        failed = (entry for entry in own if entry.mark.startswith(f"{OUTCOME}@"))
        self.attempts = tuple(sorted(failed, key=lambda entry: entry.attempts))

    @property
    def name(self) -> str:
        """What it is called in messages; no stand-in of the step itself is meant by it."""
        return f"undo of {self.location.rpartition('/')[2]}"

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at undoing this execution of the step."""
        epoch, n = self._step.order
        return sha256(f"{self.run_id}:{self.location}!{epoch}.{n}".encode()).hexdigest()[:32]

    @property
    def call(self) -> Callable[[], Any]:
        """The undo function with the step's result and arguments bound."""
        return call_of(self._step, self._compensation, self._packages)

    @property
    def arguments(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """What `verify` would be asked with; an undo has none."""
        return (), {}

    def encode(self, value: Any) -> None:
        """What an undo returns is of no interest."""
