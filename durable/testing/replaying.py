"""Replays recorded histories against code, so that a deployment does not meet a run that it cannot take further."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durable.engine.lease import Loaded
from durable.engine.opening import open_execution
from durable.errors import InvalidInput, Misuse
from durable.execution import Raised
from durable.model.exported import ExportedHistory, from_document
from durable.model.run import Run

if TYPE_CHECKING:
    from durable.app import App
    from durable.execution import Execution
    from durable.model.exported import ExportedRun


class ReplayFailed(AssertionError):
    """The code cannot take a recorded run further: deployed, it would block such a run, or fail it."""

    def __init__(self, run: ExportedRun, reason: str) -> None:
        self.run_id = run.id
        super().__init__(f'run "{run.id}" ({run.workflow} {run.version}) does not replay: {reason}')


def assert_replays(history: Mapping[str, Any] | Path | str, app: App[Any]) -> None:
    """Passes if the app's code goes through the recorded history to its end, as it does before a turn begins.

    Nothing is performed: no step is run and nothing is stored. Code that was added after what the run has done is fine.

    Args:
        history: What `client.export(run_id)` gives, or a file that `durable export RUN` has written.
        app: The code to be deployed.

    Raises:
        ReplayFailed: Such a run would be blocked, or end with an error that it did not have; the message says where.
        InvalidInput: This is no exported history.
    """
    replay(read_history(history), app)


def read_history(history: Mapping[str, Any] | Path | str) -> ExportedHistory:
    """A history from its document or its file; raises InvalidInput."""
    if isinstance(history, Mapping):
        return from_document(dict(history))
    try:
        document: Any = json.loads(Path(history).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the history {history}", str(error)) from None
    return from_document(document)


def replay(history: ExportedHistory, app: App[Any]) -> None:
    """As `assert_replays`, for a history that has been read."""
    run = history.run
    loaded = Loaded(entries=history.entries, messages=(), payloads={} if run.input is None else {"input": run.input})
    try:
        execution = open_execution(app, _record(run), loaded)
    except Misuse as misuse:
        raise ReplayFailed(run, str(misuse)) from misuse
    try:
        _advance(execution, run)
    finally:
        execution.unwind()


def _advance(execution: Execution, run: ExportedRun) -> None:
    try:
        execution.advance()
    except Misuse as misuse:
        raise ReplayFailed(run, str(misuse)) from misuse
    if not execution.finished or run.status in {"failed", "cancelled", "timed_out", "rolling_back"}:
        return
    match execution.outcome:
        case Raised(error):
            told = f"the recorded run was {run.status}, and now its code raises {type(error).__name__}: {error}"
            raise ReplayFailed(run, told) from error
        case _:
            return


def _record(run: ExportedRun) -> Run:
    return Run(
        id=run.id, workflow=run.workflow, version=run.version, status=run.status, created_at=run.created_at, epoch=0,
        born=0, clean_epoch=0, writer="", input=run.input, tags=run.tags, headers=run.headers,
        parent=run.parent, lineage=run.lineage, started_at=run.started_at, python=run.python, waits=run.waits, waits_digest=run.waits_digest, reason=run.reason,
    )  # fmt: skip
