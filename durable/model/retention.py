"""How long ended runs are kept, by how they ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from typing_extensions import TypedDict

from durable.model.duration import Duration, seconds
from durable.model.run import TERMINAL, Status

SHORTEST: Final = 60.0
"""Callers that wait for a result look every few seconds; what is on its way to an ended run arrives within a minute."""


class RetentionByEnding(TypedDict, total=False):
    """A duration for each way to end; runs that end in a way that is left out are kept for good."""

    completed: Duration
    failed: Duration
    cancelled: Duration
    timed_out: Duration
    dead: Duration


Retention: TypeAlias = Duration | RetentionByEnding


def kept_by_ending(retention: Retention | None, what: str) -> Mapping[Status, float]:
    """Seconds that a run is kept after each ending; for good after one that is not in it.

    Raises:
        ValueError: A duration is not understood or shorter than a minute, or there is no such ending.
    """
    if retention is None:
        return {}
    if not isinstance(retention, Mapping):
        return dict.fromkeys(sorted(TERMINAL), seconds(retention, what, minimum=SHORTEST))
    given: Mapping[str, Duration] = dict(retention)  # type: ignore[arg-type] - mypy takes the values of a TypedDict for objects
    if unknown := sorted(set(given) - TERMINAL):
        raise ValueError(f"{what} has {', '.join(unknown)}: a run ends as {', '.join(sorted(TERMINAL))}")
    return {
        status: seconds(given[status], f"{what}, {status}", minimum=SHORTEST)
        for status in sorted(TERMINAL)
        if status in given
    }
