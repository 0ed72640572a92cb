"""What the API does, in terms of the client: requests in, JSON values out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast, get_args

from durable import codec
from durable.app import App
from durable.client import Client, StatusFilter
from durable.client.reading import whole_error
from durable.errors import InvalidInput, Misuse, RunEnded, RunError
from durable.model.entry import Entry
from durable.model.ids import PREFIX_OF_ENTITIES, check_run_id
from durable.model.message import StoredMessage
from durable.model.run import TERMINAL, Run, Status
from durable.ports import Ports, RunSummary
from handlers.answers import bytes_sent, whole_number
from handlers.requests import CancelRequest, MessageRequest, StartRequest, TerminateRequest
from handlers.views import call_view, entry_view, message_view, row_view, run_view

LARGEST_PAGE: Final = 100
HISTORY_BYTES: Final = 3 * 1024 * 1024
"""Of entries in one answer, as they are sent; unread messages and open calls need room too."""
NO_QUERY: Final[Mapping[str, str]] = {}
_STATUSES: Final = ("open", *get_args(Status))
COUNTED: Final = ("workflow", "status", "tag", "where")
"""What runs are filtered by."""
LISTED: Final = (*COUNTED, "cursor", "limit")

Headers: TypeAlias = Mapping[str, str] | None
"""What a request gives the run to pass on; None leaves it to the carriers of the app."""


@dataclass(frozen=True, slots=True)
class Started:
    """The answer to a start."""

    view: dict[str, Any]
    created: bool
    """False for a run that an earlier start, the same as this, has created."""


class Runs:
    """The runs of an app, as callers of the API see them."""

    def __init__(self, app: App[Any], client: Client, ports: Ports) -> None:
        self._app = app
        self._client = client
        self._ports = ports

    @property
    def app_name(self) -> str:
        """The name that the App was given."""
        return self._app.name

    @property
    def client(self) -> Client:
        """What acts on the runs."""
        return self._client

    def workflows(self) -> list[dict[str, Any]]:
        """What can be started, and the older versions that open runs may have."""
        return [
            {
                "name": workflow.name,
                "version": workflow.version,
                "newest": workflow is self._app.newest(workflow.name),
                "input": codec.type_name(workflow.input_type) if workflow.takes_input else None,
                "output": codec.type_name(workflow.output_type),
                "tags": list(workflow.tags),
            }
            for workflow in self._app.workflows
            if not workflow.name.startswith(PREFIX_OF_ENTITIES)
        ]

    def start(
        self, request: StartRequest, idempotency_key: str | None, *, headers: Headers = None, wait: int = 0
    ) -> Started:
        """Starts a run, or finds the one that the same start created; waits up to `wait` seconds for its end."""
        asked_at = self._ports.clock.now()
        # A workflow without an input and one whose input is null are not the same.
        given = (request.input,) if "input" in request.model_fields_set else ()
        handle = self._client.start(
            request.workflow, *given, id=request.id, idempotency_key=idempotency_key, tags=request.tags,
            on_conflict=request.on_conflict, headers=headers,
        )  # fmt: skip
        run = self._client.get(handle.id)
        created = run.created_at >= asked_at
        return Started(self.get(run.id, wait=wait) if wait else self._view(run), created)

    def start_with_message(
        self, request: StartRequest, message: MessageRequest, *, headers: Headers = None
    ) -> dict[str, Any]:
        """Accepts a message for the run, which begins with that if it does not exist."""
        message_id = message.id or self._ports.new_id()
        handle = self._client.start_with_message(
            request.workflow, request.input, message.name, message.body, id=str(request.id), message_id=message_id,
            tags=request.tags, headers=headers,
        )  # fmt: skip
        return {"id": handle.id, "message": message_id}

    def get(self, run_id: str, *, wait: int = 0) -> dict[str, Any]:
        """One run, with its payloads, as soon as it has ended or is blocked, at the latest after `wait` seconds."""
        if wait:
            with suppress(RunError, TimeoutError, Misuse):  # how it ended is told by the record
                self._client.result(run_id, timeout=wait)
        return self._view(self._client.get(run_id))

    def history(self, run_id: str, query: Mapping[str, str] = NO_QUERY) -> dict[str, Any]:
        """What the run has recorded, in order, and what it was sent and has not read: as much of it as an answer may hold.

        `cursor` is where the rest begins; the first answer has the unread messages and the open calls.
        """
        after = _place(query.get("cursor"))
        messages = self._messages(run_id)  # first, so that what is consumed meanwhile is among the entries
        entries = self._client.history(run_id)
        consumed = {message.id for entry in entries for message in entry.messages}
        unread = [message for message in messages if message.id not in consumed]
        if after is not None:
            entries, unread = [entry for entry in entries if entry.order > after], []
        calls = self._client.open_calls(run_id) if after is None and _has_calls(entries) else ()
        shown, cursor = _fitting(entries)
        return {
            "entries": shown,
            "unread": [message_view(message) for message in sorted(unread, key=lambda message: message.order)],
            "calls": [call_view(call) for call in calls],
            "cursor": cursor,
        }

    def _messages(self, run_id: str) -> list[StoredMessage]:
        """The signals and updates in the mailbox; those of the lately consumed ones that are not deleted yet included."""
        found: list[StoredMessage] = []
        cursor: str | None = None
        while True:
            page = self._ports.store.load(check_run_id(run_id), cursor=cursor, mailbox_only=True)
            found += [message for message in page.messages if message.kind in {"signal", "update"}]
            if page.cursor is None:
                break
            cursor = page.cursor
        run = self._ports.store.get(run_id)
        if run is None or not run.pruned or not found:
            return found
        buried = self._ports.store.buried(run.lineage or run.id, [message.id for message in found])
        return [message for message in found if message.id not in buried]

    def page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Runs, newest first, by the parameters of the query string."""
        page = self._client.list(
            self._workflow(query),
            status=_status(query),
            tag=query.get("tag") or None,
            where=query.get("where") or None,
            limit=whole_number(query, "limit", default=50, smallest=1, largest=LARGEST_PAGE),
            cursor=query.get("cursor") or None,
        )
        return {"runs": [self._row(row) for row in page.runs], "cursor": page.cursor}

    def _row(self, row: RunSummary) -> dict[str, Any]:
        """The index knows neither which open runs are blocked nor, where it is that of blocked ones, their workflow."""
        run = None if row.outcome in TERMINAL and row.workflow else self._ports.store.get(row.id)
        return row_view(row, run)

    def count(self, query: Mapping[str, str]) -> int:
        """How many runs there are, by the same parameters."""
        return self._client.count(
            self._workflow(query),
            status=_status(query),
            tag=query.get("tag") or None,
            where=query.get("where") or None,
        )

    def _workflow(self, query: Mapping[str, str]) -> str | None:
        workflow = query.get("workflow") or None
        if workflow is not None:
            self._app.newest(workflow)
        return workflow

    def send(self, run_id: str, request: MessageRequest) -> dict[str, Any]:
        """Accepts a message for the run's mailbox, and tells what the run waits for: anything else may be a typing error."""
        run = self._client.get(run_id)
        waits = run.waiting_for if run.status == "suspended" else ()  # in a turn it is about to be something else
        return {"id": self._client.send(run_id, request.name, request.body, id=request.id), "waiting_for": list(waits)}

    def cancel(self, run_id: str, request: CancelRequest) -> dict[str, Any]:
        """Asks the run to end, or ends it; the run as it is then."""
        if request.mode == "terminate":
            return self.terminate(run_id, TerminateRequest(reason=request.reason))
        self._client.cancel(run_id, request.mode)
        return self._view(self._client.get(run_id))

    def retry(self, run_id: str) -> dict[str, Any]:
        """Lets a run that failed or died go on from there."""
        self._client.retry(run_id)
        return self._view(self._client.get(run_id))

    def terminate(self, run_id: str, request: TerminateRequest) -> dict[str, Any]:
        """Ends the run; doing so again changes nothing, and a run that ended otherwise is refused."""
        self._client.terminate(run_id, reason=request.reason or "")
        run = self._client.get(run_id)
        if run.status != "cancelled":
            raise RunEnded(run_id, run.status)
        return self._view(run)

    def resume(self, run_id: str) -> dict[str, Any]:
        """Lets a blocked run try again."""
        self._client.resume(run_id)
        return self._view(self._client.get(run_id))

    def _view(self, run: Run) -> dict[str, Any]:
        store = self._ports.store
        output, error = None, whole_error(self._ports, run)
        if run.status == "completed":  # the turn that ended the run stored the output under its own epoch
            output = store.get_payload(run.id, "output", epoch=run.epoch) if run.output_stored else run.output
        return run_view(
            run,
            input=store.get_payload(run.id, "input") if run.input_stored else run.input,
            output=output,
            error=error,
            now=self._ports.clock.now(),
        )


def _fitting(entries: Sequence[Entry]) -> tuple[list[dict[str, Any]], str | None]:
    """As many entries as an answer has room for, one at least, and the place of the last one if others follow."""
    shown: list[dict[str, Any]] = []
    room = HISTORY_BYTES
    for entry in entries:
        view = entry_view(entry)
        room -= bytes_sent(json.dumps(view))
        if room < 0 and shown:
            return shown, "{}.{}".format(*entries[len(shown) - 1].order)
        shown.append(view)
    return shown, None


def _place(cursor: str | None) -> tuple[int, int] | None:
    if not cursor:
        return None
    epoch, _, number = cursor.partition(".")
    if not (cursor.isascii() and epoch.isdecimal() and number.isdecimal()):
        raise InvalidInput("cursor", f"{cursor[:40]!r} is none that an answer had")
    return int(epoch), int(number)


def _status(query: Mapping[str, str]) -> StatusFilter | None:
    status = query.get("status") or None
    if status is not None and status not in _STATUSES:
        raise InvalidInput("status", f"{status!r} is not one of {', '.join(_STATUSES)}")
    return cast("StatusFilter | None", status)


def _has_calls(entries: Sequence[Entry]) -> bool:
    return any(entry.kind == "call" for entry in entries)
