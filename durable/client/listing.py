"""Listing runs: newest first, over one workflow or all, a page at a time."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from durable.errors import InvalidInput
from durable.model.run import ATTENTION, TERMINAL, Status
from durable.ports import RunPage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from durable.app import App
    from durable.definitions import Workflow
    from durable.ports import Condition, RunSummary, Store

StatusFilter: TypeAlias = Status | Literal["open"]

PAGE = 200
LONGEST_PLACE = 256
"""Characters of a page's end in the index: a time and a run id. DynamoDB refuses keys over 1 KB."""


def names_of(app: App[Any], workflow: Workflow[Any, Any] | str | None) -> Sequence[str]:
    """The name of the workflow, or of every workflow that the app has."""
    if workflow is None:
        return sorted({known.name for known in app.workflows})
    return [workflow if isinstance(workflow, str) else workflow.name]


def list_runs(
    store: Store,
    workflows: Sequence[str],
    *,
    status: StatusFilter | None,
    tag: str | None = None,
    where: Sequence[Condition] = (),
    limit: int,
    cursor: str | None,
) -> RunPage:
    """Runs of the workflows, newest first.

    The index knows open and ended runs; other kinds of open runs (`suspended`, `pending` ...) are found by reading each
    open one, so a page of them may take many requests. Tag and attributes filter what the index gives: a page of few among
    many reads many.
    """
    lanes = [_Lane(store, workflow, status, tag, where, limit) for workflow in workflows]
    places = _places(cursor)
    for lane in lanes:
        lane.move_to(places.get(lane.workflow, (None, 0)))
    found: list[RunSummary] = []
    while len(found) < limit:
        heads = [(head.created_at, head.id, lane) for lane in lanes if (head := lane.head()) is not None]
        if not heads:
            return RunPage(runs=found)
        lane = max(heads, key=lambda head: head[:2])[2]
        found.append(lane.take())
    if all(lane.head() is None for lane in lanes):
        return RunPage(runs=found)
    return RunPage(runs=found, cursor=_cursor({lane.workflow: lane.place for lane in lanes}))


def runs_needing_attention(store: Store, status: Status, *, limit: int, cursor: str | None) -> RunPage:
    """Failed, dead or blocked runs of every workflow, newest first."""
    assert status in ATTENTION
    if cursor is not None and not 0 < len(cursor) <= LONGEST_PLACE:
        raise _unknown(cursor)
    return store.runs_needing_attention(status, limit=limit, cursor=cursor)


def count(
    store: Store,
    workflows: Sequence[str],
    *,
    status: StatusFilter | None,
    tag: str | None = None,
    where: Sequence[Condition] = (),
) -> int:
    """How many runs there are; reads the whole index."""
    return sum(1 for workflow in workflows for _ in _Lane(store, workflow, status, tag, where, 1000))


_Place: TypeAlias = tuple[str | None, int]
"""The cursor of a page of the store, and how many of its rows have been handed out."""


class _Lane:
    """The runs of one workflow, read ahead a page at a time."""

    def __init__(
        self,
        store: Store,
        workflow: str,
        status: StatusFilter | None,
        tag: str | None,
        where: Sequence[Condition],
        limit: int,
    ) -> None:
        self.workflow = workflow
        self._store = store
        self._tag = tag
        self._where = where
        self._status: StatusFilter | None = status
        self._is_indexed = status in {None, "open", *TERMINAL}
        self._limit = min(limit, PAGE)
        self._page: RunPage | None = None
        self._start: str | None = None
        self._taken = 0

    @property
    def place(self) -> _Place:
        return self._start, self._taken

    def move_to(self, place: _Place) -> None:
        self._start, self._taken = place

    def head(self) -> RunSummary | None:
        while True:
            if self._page is None:
                self._page = self._read()
            for row in self._page.runs[self._taken :]:
                if self._wanted(row):
                    return row
                self._taken += 1
            if self._page.cursor is None:
                return None
            self._start, self._taken, self._page = self._page.cursor, 0, None

    def take(self) -> RunSummary:
        row = self.head()
        assert row is not None
        self._taken += 1
        return row

    def __iter__(self) -> Iterator[RunSummary]:
        while self.head() is not None:
            yield self.take()

    def _read(self) -> RunPage:
        outcome: StatusFilter | None = self._status if self._is_indexed else "open"
        return self._store.list_runs(
            self.workflow, outcome=outcome, tag=self._tag, where=self._where, limit=self._limit, cursor=self._start
        )

    def _wanted(self, row: RunSummary) -> bool:
        if self._is_indexed:
            return True
        run = self._store.get(row.id)
        return run is not None and run.status == self._status


def _cursor(places: Mapping[str, _Place]) -> str:
    return base64.urlsafe_b64encode(json.dumps(places, separators=(",", ":")).encode()).decode()


def _places(cursor: str | None) -> dict[str, _Place]:
    if cursor is None:
        return {}
    try:
        places = json.loads(base64.urlsafe_b64decode(cursor))
        found = {
            str(name): (None if start is None else str(start), int(taken)) for name, (start, taken) in places.items()
        }
    except (binascii.Error, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise _unknown(cursor) from None
    if any(taken < 0 or (start is not None and not 0 < len(start) <= LONGEST_PLACE) for start, taken in found.values()):
        raise _unknown(cursor)
    return found


def _unknown(cursor: str) -> InvalidInput:
    return InvalidInput("the cursor", f"{cursor[:40]!r} is not one that a listing has given")
