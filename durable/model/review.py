"""An open review as it is stored: what is to be decided, by whom, until when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

STATE_PREFIX: Final = "review:"
"""Reviews are published values of their run under this and their location; under this alone, the list of open ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalated:
    """Reviewers who may decide too, from a moment on."""

    at: float
    """Seconds since 1970."""
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewState:
    """What listings and decisions need to know of a review."""

    location: str
    name: str
    channel: str
    """The name under which the decision is sent."""
    artifact: Any
    """JSON value of what is to be decided about."""
    reviewers: tuple[str, ...]
    escalated: tuple[Escalated, ...] = ()
    opened_at: float
    deadline: float | None = None

    def deciders(self, now: float) -> tuple[str, ...]:
        """Who may decide at this moment."""
        later = (reviewer for step in self.escalated if step.at <= now for reviewer in step.to)
        return tuple(dict.fromkeys((*self.reviewers, *later)))

    @property
    def decision_id(self) -> str:
        """The message id of the decision: always the same, so that the first decision is the only one."""
        return f"review:{self.channel}:{round(self.opened_at * 1000)}"

    def to_text(self) -> str:
        """The JSON text that is published."""
        return _ADAPTER.dump_json(self).decode()


_ADAPTER: TypeAdapter[ReviewState] = TypeAdapter(ReviewState)


_OPENED: TypeAdapter[dict[str, float]] = TypeAdapter(dict[str, float])


def open_list(opened: Mapping[str, float]) -> str:
    """The JSON text of the list of open reviews: their locations and when they were opened."""
    return _OPENED.dump_json(dict(opened)).decode()


def opened_from(text: str | None) -> Mapping[str, float]:
    """Reads what `open_list` wrote."""
    return {} if text is None else _OPENED.validate_json(text)


def open_reviews(states: Mapping[str, str]) -> list[ReviewState]:
    """The open reviews among the published values of a run, by location."""
    return [review_from(states[STATE_PREFIX + location]) for location in opened_from(states.get(STATE_PREFIX))]


def review_from(text: str) -> ReviewState:
    """Reads what `to_text` wrote."""
    return _ADAPTER.validate_json(text)
