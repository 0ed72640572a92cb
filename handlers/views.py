"""What the API shows of runs: plain JSON values, times in ISO 8601, payloads as the JSON that they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from durable.client import OpenCall
from durable.errors import ErrorInfo
from durable.model.attributes import Attributes, AttributeValue
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.run import EPOCH_ORIGIN, Run
from durable.model.stored import Unreadable
from durable.ports import RunSummary

SHOWN_BYTES: Final = 1024 * 1024
"""Of a single value: an answer may hold several, and has at most 6 MB (Lambda quotas)."""


def run_view(run: Run, *, input: str | None, output: str | None, error: ErrorInfo | None, now: float) -> dict[str, Any]:
    """A run with its payloads (JSON texts) and its whole error. A run that somebody works on right now is `running`, unless it rolls back."""
    working = run.held_at(now) and not run.ended and run.status != "rolling_back"
    return {
        "id": run.id,
        "workflow": run.workflow,
        "version": run.version,
        "status": "running" if working else run.status,
        "reason": run.reason,
        "waiting_for": list(run.waiting_for),
        "due_at": moment(run.due_at),
        "deadline": moment(_deadline(run)),
        "cancel_requested": run.cancel_requested,
        "ending": run.ending,
        "created_at": moment(run.created_at),
        "started_at": moment(run.started_at),
        "updated_at": moment(run.updated_at),
        "finished_at": moment(run.finished_at),
        "tags": list(run.tags),
        "attributes": attributes_view(run.attributes),
        "headers": dict(run.headers),
        "parent": run.parent,
        "lineage": run.lineage,
        "successor": run.successor,
        "input": payload(input),
        "output": payload(output),
        "error": error_view(error),
        "failed_at": list(run.failed_at),
        "undelivered": run.undelivered,
        "late_results": run.late_results,
    }


def _deadline(run: Run) -> float | None:
    """Not known of a run that is blocked: its record has the seconds that are left."""
    return run.deadline if run.deadline is not None and run.deadline > EPOCH_ORIGIN else None


def row_view(row: RunSummary, run: Run | None = None) -> dict[str, Any]:
    """A row of a listing. Of open runs only those that are blocked or roll back are told apart, by their record."""
    status = run.status if run is not None and run.status not in {"pending", "suspended"} else row.outcome
    return {
        "id": row.id,
        "workflow": row.workflow if run is None else run.workflow,
        "status": status or "open",
        "created_at": moment(row.created_at),
        "tags": list(row.tags if run is None else run.tags),
        "attributes": attributes_view(row.attributes if run is None else run.attributes),
    }


def attributes_view(attributes: Attributes) -> dict[str, AttributeValue]:
    """The attributes that the workflow has set; those that begin with `_` are the framework's."""
    return {name: value for name, value in attributes.items() if not name.startswith("_")}


def entry_view(entry: Entry) -> dict[str, Any]:
    """An item of the history."""
    return {
        "location": entry.location,
        "mark": entry.mark,
        "kind": entry.kind,
        "value": payload(entry.value),
        "error": error_view(entry.error),
        "failure": entry.failure,
        "attempts": entry.attempts,
        "started_at": moment(entry.started_at),
        "recorded_at": moment(entry.at),
        "retry_at": moment(entry.retry_at),
        "messages": [message_view(message) for message in entry.messages],
    }


def call_view(call: OpenCall) -> dict[str, Any]:
    """A remote step that the run waits for."""
    return {
        "location": call.location,
        "name": call.name,
        "queue": call.queue,
        "attempt": call.attempt,
        "state": call.state,
        "since": moment(call.since),
        "retry_at": moment(call.retry_at),
        "picked_up_at": moment(call.picked_up_at),
        "heartbeat_at": moment(call.heartbeat_at),
        "worker": call.worker,
        "progress": payload(call.progress),
    }


def message_view(message: StoredMessage) -> dict[str, Any]:
    """A message of the mailbox."""
    return {
        "id": message.id,
        "name": message.name,
        "kind": message.kind,
        "body": payload(message.body),
        "arrived_at": moment(message.arrived_at),
    }


def error_view(error: ErrorInfo | None) -> dict[str, Any] | None:
    """A recorded error with its causes."""
    if error is None:
        return None
    return {
        "type": error.qualified,
        "message": error.message,
        "data": error.data,
        "cause": error_view(error.cause),
    }


def payload(text: str | None) -> Any:
    """The value of a JSON text; null for none. One that cannot be read says why, so that the others can be looked at."""
    if isinstance(text, Unreadable):
        return {"unreadable": text.reason}
    if text is not None and len(text) * 4 > SHOWN_BYTES and (size := len(text.encode())) > SHOWN_BYTES:
        return {"unreadable": f"it has {size:,} bytes and at most {SHOWN_BYTES:,} are shown; read it with the client"}
    return None if text is None else json.loads(text)


def moment(seconds: float | None) -> str | None:
    """A time as people and programs read it: UTC, to the millisecond."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
