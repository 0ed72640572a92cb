"""Attempts at remote steps in memory: who has picked one up, when it was last heard of, whether it is still wanted."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from durable.adapters.dynamodb import keys as layout
from durable.adapters.sizes import check_progress
from durable.model.limits import TASK_KEPT_SECONDS
from durable.model.task import TaskRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from durable.adapters.memory.partition import Table


class Tasks:
    """One row an attempt."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def start(self, run_id: str, task_id: str, *, worker: str, now: float, expires_at: float) -> TaskRow:
        """Notes that a worker begins."""

        def begun(row: TaskRow) -> dict[str, Any]:
            first = now if row.picked_up_at is None else row.picked_up_at
            return {"picked_up_at": first, "worker": worker, "heartbeat_at": now, "expires_at": float(ceil(expires_at))}

        return self._change(run_id, task_id, begun)

    def beat(self, run_id: str, task_id: str, *, now: float, progress: str | None) -> TaskRow:
        """Notes a sign of life."""
        check_progress(task_id, progress)

        def alive(row: TaskRow) -> dict[str, Any]:
            kept = float(ceil(now + TASK_KEPT_SECONDS)) if row.expires_at is None else row.expires_at
            told = row.progress if progress is None else progress
            return {"heartbeat_at": now, "progress": told, "expires_at": kept}

        return self._change(run_id, task_id, alive)

    def close(self, run_id: str, task_id: str, *, reason: str, expires_at: float) -> TaskRow:
        """Notes that the result is not wanted any more."""
        return self._change(run_id, task_id, lambda _: {"closed": reason, "expires_at": float(ceil(expires_at))})

    def get(self, run_id: str, task_id: str) -> TaskRow | None:
        """What is known."""
        with self._table.lock:
            return self._table.tasks.get(run_id, {}).get(layout.task_key(task_id))

    def _change(self, run_id: str, task_id: str, change: Callable[[TaskRow], dict[str, Any]]) -> TaskRow:
        sk = layout.task_key(task_id)
        with self._table.lock:
            rows = self._table.tasks.setdefault(run_id, {})
            row = rows.get(sk) or TaskRow(run_id=run_id, id=task_id)
            if row.closed is None:
                row = rows[sk] = replace(row, **change(row))
            return row
