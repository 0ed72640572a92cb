"""Attempts at remote steps on DynamoDB: who has picked one up, when it was last heard of, whether it is still wanted."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, keys
from durable.adapters.dynamodb.requests import Failed
from durable.adapters.sizes import check_progress
from durable.errors import StoreUnavailable
from durable.model.limits import TASK_KEPT_SECONDS
from durable.model.task import TaskRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.adapters.dynamodb.attributes import AttributeValue, Item
    from durable.adapters.dynamodb.requests import Requests


class Tasks:
    """One small item an attempt; each method is one request."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def start(self, run_id: str, task_id: str, *, worker: str, now: float, expires_at: float) -> TaskRow:
        """Notes that a worker begins."""
        changes = {"worker": a.text(worker), "heartbeat_at": a.number(now), "expires_at": a.number(ceil(expires_at))}
        first = "#picked_up_at = if_not_exists(#picked_up_at, :heartbeat_at_)"
        return self._change(run_id, task_id, changes, first)

    def beat(self, run_id: str, task_id: str, *, now: float, progress: str | None) -> TaskRow:
        """Notes a sign of life."""
        check_progress(task_id, progress)
        changes = {"heartbeat_at": a.number(now)}
        if progress is not None:
            changes["progress"] = a.text(progress)
        kept = "#expires_at = if_not_exists(#expires_at, :expires_at)"
        return self._change(run_id, task_id, changes, kept, {":expires_at": a.number(ceil(now + TASK_KEPT_SECONDS))})

    def close(self, run_id: str, task_id: str, *, reason: str, expires_at: float) -> TaskRow:
        """Notes that the result is not wanted any more."""
        changes = {"closed": a.text(reason), "expires_at": a.number(ceil(expires_at))}
        return self._change(run_id, task_id, changes)

    def get(self, run_id: str, task_id: str) -> TaskRow | None:
        """What is known."""
        item = self._requests.get(_key(run_id, task_id))
        return None if item is None else _read(run_id, item)

    def _change(
        self,
        run_id: str,
        task_id: str,
        changes: Mapping[str, AttributeValue],
        expression: str | None = None,
        values: Mapping[str, AttributeValue] | None = None,
    ) -> TaskRow:
        expressions = () if expression is None else (expression,)
        arguments = conditions.update(changes, conditions.NOT_CLOSED, values, *expressions)
        answer = self._requests.update(_key(run_id, task_id), {**arguments, "ReturnValues": "ALL_NEW"})
        item = answer.old if isinstance(answer, Failed) else answer
        if item is None:
            raise StoreUnavailable(f'task "{task_id}" of run "{run_id}": what refused the change is gone')
        return _read(run_id, item)


def _key(run_id: str, task_id: str) -> Item:
    return {"pk": a.text(keys.tasks(run_id)), "sk": a.text(keys.task_key(task_id))}


def _read(run_id: str, item: Mapping[str, Any]) -> TaskRow:
    def number(name: str) -> float | None:
        return a.read_float(item[name]) if name in item else None

    def text(name: str) -> str | None:
        return a.read_text(item[name]) if name in item else None

    return TaskRow(
        run_id=run_id,
        id=item["sk"]["S"],
        picked_up_at=number("picked_up_at"),
        worker=text("worker") or "",
        heartbeat_at=number("heartbeat_at"),
        progress=text("progress"),
        closed=text("closed"),
        expires_at=number("expires_at"),
    )
