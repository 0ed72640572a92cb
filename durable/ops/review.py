"""A review: a person decides about something, or the time for it runs out.

| state     | history at the location                  | what happens                                                    |
|-----------|------------------------------------------|-----------------------------------------------------------------|
| open      | nothing; the settle names it             | published for listings; a decision wakes the run                |
| decided   | an entry with the decision               | returns it as a Review                                          |
| timed out | an entry with an error                   | WaitTimeout is raised                                           |
| rejected  | an entry with a decision without message | the escalation ended in `auto_reject`: returns a rejected Review |

Whoever sends a decision is checked twice: by the client, so that a refusal is seen, and here, when it is consumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import from_json

from durable import codec
from durable.errors import ErrorInfo, WaitTimeout
from durable.model.location import digest
from durable.model.review import STATE_PREFIX, Escalated, ReviewState
from durable.ops.operation import Host, WaitOperation, until
from durable.values import Review

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage


class ReviewOperation(WaitOperation):
    """`await ctx.review("expense", claim, reviewers=["ann"])`."""

    __slots__ = (
        "_artifact",
        "_escalated",
        "_name",
        "_reject_after",
        "_reviewers",
        "_timeout",
        "channels",
        "opened_at",
    )
    kind = "review"

    def __init__(
        self,
        host: Host,
        name: str,
        artifact: str,
        *,
        reviewers: Sequence[str],
        timeout: float | None = None,
        escalated: Sequence[tuple[float, tuple[str, ...]]] = (),
        reject_after: float | None = None,
    ) -> None:
        self._name = name
        self._artifact = artifact
        self._reviewers = tuple(reviewers)
        self._timeout = timeout
        self._escalated = escalated
        self._reject_after = reject_after
        self.opened_at = 0.0
        super().__init__(host, name, "review")
        self.channels = (f"review:{self.name}",)

    @property
    def name(self) -> str:
        """What decisions are addressed to: a digest of the location."""
        return digest(self.location, self.kind)

    @property
    def state_key(self) -> str:
        """Where the review is published."""
        return STATE_PREFIX + self.location

    def state(self) -> str:
        """What is published about it, as JSON text."""
        return self._state().to_text()

    def asked_deadline(self) -> float | None:
        self.opened_at = now = self.journal.loop.now
        ends = [seconds for seconds in (self._timeout, self._reject_after) if seconds is not None]
        self.immediate = bool(ends) and min(ends) <= 0
        return now + max(0.0, min(ends)) if ends else None

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        state = self._state()
        for message in messages:
            decision = _decision(message)
            if decision is not None and decision.reviewer in state.deciders(message.arrived_at):
                return (message,)
        return ()

    def on_messages(self, messages: Sequence[StoredMessage]) -> str:
        return messages[0].body

    def on_deadline(self) -> tuple[str | None, ErrorInfo | None]:
        if self._reject_after is not None and (self._timeout is None or self._reject_after <= self._timeout):
            nobody = Review(decision="rejected", reviewer="", comment="nobody decided in time")
            return codec.encode(nobody, Review), None
        return None, ErrorInfo(type=WaitTimeout.__qualname__, module=WaitTimeout.__module__, message="")

    def decode(self, entry: Entry) -> Any:
        if entry.error is not None:
            raise WaitTimeout(self.location)
        return self.read(entry.value, Review)

    def describe(self) -> str:
        return f'review "{self._name}" by {", ".join(self._reviewers)}{until(self.deadline)}'

    def _state(self) -> ReviewState:
        return ReviewState(
            location=self.location,
            name=self._name,
            channel=self.name,
            artifact=from_json(self._artifact),
            reviewers=self._reviewers,
            escalated=tuple(Escalated(at=self.opened_at + after, to=to) for after, to in self._escalated),
            opened_at=self.opened_at,
            deadline=self.deadline,
        )


def _decision(message: StoredMessage) -> Review | None:
    try:
        decision: Review = codec.decode(message.body, Review)
    except ValidationError:
        return None
    return decision
