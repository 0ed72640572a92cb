"""Reading runs: output, history, and how a run that did not complete is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, assert_never

from pydantic import TypeAdapter

from durable import codec, records
from durable.errors import (
    ErrorInfo,
    RunBlocked,
    RunDead,
    RunFailed,
    RunNotFound,
    RunTimedOut,
    RunWasCancelled,
    UndecodableHistory,
    UnknownWorkflow,
)
from durable.model.exported import exported
from durable.model.history import counting_entries, unpacked
from durable.model.ids import check_run_id
from durable.model.stored import Unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.app import App
    from durable.definitions import Workflow
    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import Ports


_ERROR: Final = TypeAdapter(ErrorInfo)


def the_run(ports: Ports, run_id: str) -> Run:
    """The run record; raises RunNotFound."""
    run = ports.store.get(check_run_id(run_id))
    if run is None:
        raise RunNotFound(run_id)
    return run


def last_of_lineage(ports: Ports, run_id: str) -> Run:
    """The run, or the last of those that have continued it as new; raises RunNotFound."""
    run = records.last_of_lineage(ports, check_run_id(run_id))
    if run is None:
        raise RunNotFound(run_id)
    return run


def output(app: App[Any], ports: Ports, run: Run, workflow: Workflow[Any, Any] | None) -> Any:
    """The output of a completed run, as the type that its own version of the workflow declares."""
    # The turn that settled the run stored the output under its epoch, the run's last one.
    text = ports.store.get_payload(run.id, "output", epoch=run.epoch) if run.output_stored else run.output
    try:
        type_ = app.find(run.workflow, run.version).output_type
    except UnknownWorkflow:
        type_ = codec.UNTYPED if workflow is None else workflow.output_type
    try:
        return codec.decode(text, type_)
    except ValueError as problem:
        raise UndecodableHistory(
            f'output of run "{run.id}"', codec.type_name(type_), codec.reason_of(problem)
        ) from None


def whole_error(ports: Ports, run: Run) -> ErrorInfo | None:
    """The error that ended the run, with its data and causes; of a large one the record has the beginning only."""
    # The turn that ended the run stored it under its own epoch.
    apart = run.output_stored and run.status != "completed"
    stored = ports.store.get_payload(run.id, "output", epoch=run.epoch) if apart else None
    return run.error if stored is None or isinstance(stored, Unreadable) else _ERROR.validate_json(stored)


def raise_unless_open(ports: Ports, run: Run) -> None:
    """Raises how the run ended, or that it is blocked; returns for a run that may still complete."""
    if run.output_stored:
        run = replace(run, error=whole_error(ports, run))
    match run.status:
        case "pending" | "suspended" | "rolling_back":
            return
        case "failed":
            raise RunFailed(run.id, f"failed: {run.error or run.reason}", run.error)
        case "cancelled":
            raise RunWasCancelled(run.id, f"was cancelled: {run.reason or 'no reason given'}", run.error)
        case "timed_out":
            raise RunTimedOut(run.id, f"timed out: {run.reason or 'its time was up'}", run.error)
        case "dead":
            raise RunDead(run.id, f"is dead: {run.error or run.reason}", run.error)
        case "blocked":
            raise RunBlocked(run.id, f"is blocked: {_why_blocked(run)}", run.error)
        case "completed":
            _no_output_wanted(run)
        case _:
            assert_never(run.status)


def history(ports: Ports, run_id: str) -> Sequence[Entry]:
    """The entries that count, in order of record."""
    return _run_and_history(ports, run_id)[1]


def export(ports: Ports, run_id: str) -> dict[str, Any]:
    """The run's history as a document, JSON data."""
    run, entries = _run_and_history(ports, run_id)
    lone = tuple(replace(entry, carried=()) for entry in entries)  # what an item carries is among them
    given = ports.store.get_payload(run_id, "input") if run.input_stored else run.input
    apart = run.output_stored and run.status == "completed"
    output = ports.store.get_payload(run_id, "output", epoch=run.epoch) if apart else run.output
    return exported(run, lone, input=given, output=output)


def _run_and_history(ports: Ports, run_id: str) -> tuple[Run, Sequence[Entry]]:
    check_run_id(run_id)
    entries = [entry for page in records.pages_of(ports.store, run_id) for entry in page.entries]
    # Only now, so that a fence recorded while the pages were read is known.
    run = the_run(ports, run_id)
    return run, sorted(unpacked(counting_entries(run, entries)), key=lambda entry: entry.order)


def _why_blocked(run: Run) -> str:
    """The whole reason, with what to do, under the error's class: the record's error is cut to its beginning."""
    if run.ending or run.error is None:
        return run.reason or str(run.error)
    whole = run.reason is not None and run.reason.startswith(run.error.message.removesuffix("…"))
    return f"{run.error.type}: {run.reason}" if whole else str(run.error)


def _no_output_wanted(run: Run) -> NoReturn:
    raise AssertionError(f'run "{run.id}" has completed: read its output')
