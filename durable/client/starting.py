"""Starting a run: one record, then one envelope; the same start twice is one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, assert_never

from durable import codec
from durable.errors import (
    IdempotencyKeySpent,
    InvalidInput,
    InvalidName,
    RunAlreadyExists,
    StoreUnavailable,
    UnknownWorkflow,
    WorkflowNotRegistered,
)
from durable.model.envelope import Start
from durable.model.ids import check_name, check_run_id
from durable.model.limits import INLINE_BYTES
from durable.model.run import Run, first_epoch
from durable.model.tags import check_tags
from durable.options import MISSING
from durable.ports import Created, Exists, KeyTaken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.app import App
    from durable.definitions import Workflow
    from durable.ports import Ports

OnConflict = Literal["return", "error", "replace-terminal"]

LOST_START_SECONDS: Final = 30.0
"""A run whose first envelope is lost is found by maintenance after this time."""


def registered(app: App[Any], workflow: Workflow[Any, Any] | str) -> Workflow[Any, Any]:
    """The app's workflow of this name and version, by a name alone the newest; raises WorkflowNotRegistered."""
    if isinstance(workflow, str):
        return app.newest(workflow)
    try:
        return app.find(workflow.name, workflow.version)
    except UnknownWorkflow:
        known = ", ".join(f"{other.name} {other.version}" for other in app.workflows) or "none"
        raise WorkflowNotRegistered(f"{workflow.name} {workflow.version}", known) from None


def input_text(workflow: Workflow[Any, Any], value: object, *, from_json: bool) -> str | None:
    """The input as JSON text, checked against the workflow's annotation; None for a workflow that takes none."""
    what = f'the input of workflow "{workflow.name}"'
    if not workflow.takes_input:
        if value is not MISSING and value is not None:
            raise InvalidInput(what, "it takes no input")
        return None
    if value is MISSING:
        raise InvalidInput(what, f"it is missing; the workflow takes {codec.type_name(workflow.input_type)}")
    if from_json:
        typed = codec.parsed(codec.encode(value, codec.UNTYPED, what=what), workflow.input_type, what=what)
    else:
        typed = codec.validated(value, workflow.input_type, what=what)
    return codec.encode(typed, workflow.input_type, what=what)


def new_run(
    ports: Ports, workflow: Workflow[Any, Any], text: str | None, *, id: str | None, tags: Sequence[str]
) -> tuple[Run, str | None]:
    """The record of a run that begins now, and its input where that is stored apart."""
    now = ports.clock.now()
    epoch = first_epoch(now)
    apart = text is not None and len(text.encode()) > INLINE_BYTES
    run = Run(
        id=ports.new_id() if id is None else check_run_id(id),
        workflow=workflow.name,
        version=workflow.version,
        status="pending",
        created_at=now,
        updated_at=now,
        epoch=epoch,
        born=epoch,
        clean_epoch=epoch,
        writer=ports.new_id(),
        input=None if apart else text,
        input_stored=apart,
        input_digest=codec.digest(text),
        tags=check_tags((*workflow.tags, *check_tags(tags))),
        due_at=now + LOST_START_SECONDS,
    )
    return run, text if apart else None


def start(
    ports: Ports, run: Run, stored_input: str | None, *, idempotency_key: str | None, on_conflict: OnConflict
) -> str:
    """Creates the run, or finds the one that the same start has created; its id.

    Raises:
        RunAlreadyExists: The id, or the key, belongs to a run with another workflow or input, or `on_conflict="error"`.
        IdempotencyKeySpent: The key's run has been purged.
    """
    if idempotency_key is not None:
        check_name("idempotency key", idempotency_key)
    answer = ports.store.create(run, input=stored_input, idempotency_key=idempotency_key)
    match answer:
        case Created():
            _announce(ports, run.id)
            return run.id
        case Exists():
            return _existing(ports, answer.run, run, on_conflict)
        case KeyTaken():
            holder = ports.store.get(answer.run_id)
            if holder is None:
                assert idempotency_key is not None
                raise IdempotencyKeySpent(idempotency_key, answer.run_id)
            return _existing(ports, holder, run, on_conflict)
        case _:
            assert_never(answer)


def check_on_conflict(on_conflict: str) -> None:
    """Refuses a word that `start` does not know."""
    if on_conflict not in {"return", "error", "replace-terminal"}:
        raise InvalidName("on_conflict", on_conflict, '"return", "error" or "replace-terminal"')


def _existing(ports: Ports, existing: Run, wanted: Run, on_conflict: OnConflict) -> str:
    same = (existing.workflow, existing.input_digest) == (wanted.workflow, wanted.input_digest)
    if not same or on_conflict == "error":
        raise RunAlreadyExists(existing.id)
    if existing.status == "pending" and existing.started_at is None:
        # The envelope of the first start may have been lost.
        _announce(ports, existing.id)
    return existing.id


def _announce(ports: Ports, run_id: str) -> None:
    try:
        ports.runs.send(Start(run_id=run_id, id=ports.new_id()))
    except StoreUnavailable:
        # The run exists and is due soon: maintenance finds it, so to the caller it has been started.
        return
