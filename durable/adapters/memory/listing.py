"""Listings in memory, in the order in which the table's indexes have them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Literal

from durable.adapters.dynamodb import keys as layout
from durable.model.run import ATTENTION
from durable.ports import RunPage, RunSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.adapters.memory.partition import Table
    from durable.model.run import Run, Status
    from durable.ports import Condition


class Listing:
    """Finds runs without their ids."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def runs(
        self,
        workflow: str,
        *,
        outcome: Status | Literal["open"] | None,
        tag: str | None,
        where: Sequence[Condition],
        limit: int,
        cursor: str | None,
    ) -> RunPage:
        """A workflow's runs, newest first."""

        def wanted(run: Run) -> bool:
            return (
                run.workflow == workflow
                and (outcome is None or (not run.ended if outcome == "open" else run.status == outcome))
                and (tag is None or tag in run.tags)
                and all(condition.holds(run.attributes) for condition in where)
            )

        return self._page(wanted, limit, cursor)

    def due(self, *, before: float, limit: int) -> Sequence[str]:
        """Ids of runs that are due, the longest overdue first."""
        return self._due(before, limit, over=False)

    def expired(self, *, before: float, limit: int) -> Sequence[str]:
        """Ids of ended runs that are to be deleted, the longest due first."""
        return self._due(before, limit, over=True)

    def _due(self, before: float, limit: int, *, over: bool) -> Sequence[str]:
        runs = [run for run in self._table.runs() if (run.ended and run.outbox is None) is over]
        due = [(run.due_at, run.id) for run in runs if run.due_at is not None and run.due_at <= before]
        return [run_id for _, run_id in sorted(due)[:limit]]

    def attention(self, status: Status, *, limit: int, cursor: str | None) -> RunPage:
        """Runs that need somebody, newest first."""
        return self._page(lambda run: run.status == status and status in ATTENTION, limit, cursor)

    def blocked(self, *, not_under: str, limit: int) -> Sequence[str]:
        """Ids of runs that other code has blocked, the oldest first."""
        blocked = [run for run in self._table.runs() if run.status == "blocked" and run.code_version != not_under]
        return [run.id for run in sorted(blocked, key=_created)[:limit]]

    def _page(self, wanted: Callable[[Run], bool], limit: int, cursor: str | None) -> RunPage:
        rows = sorted(((_created(run), run) for run in self._table.runs() if wanted(run)), reverse=True)
        page = list(islice((row for row in rows if cursor is None or row[0] < cursor), limit + 1))
        return RunPage(
            runs=[_summary(run) for _, run in page[:limit]],
            cursor=page[limit - 1][0] if len(page) > limit else None,
        )


def _created(run: Run) -> str:
    return layout.created_key(run.created_at, run.id)


def _summary(run: Run) -> RunSummary:
    return RunSummary(
        id=run.id,
        workflow=run.workflow,
        created_at=run.created_at,
        outcome=run.status if run.ended else None,
        tags=run.tags,
        attributes=run.attributes,
    )
