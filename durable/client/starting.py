"""Starting a run: one record, then one envelope; the same start twice is one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, assert_never

from durable import codec
from durable.errors import (
    IdempotencyKeySpent,
    InvalidName,
    RunAlreadyExists,
    StoreUnavailable,
    UnknownWorkflow,
    WorkflowNotRegistered,
)
from durable.model.envelope import Start
from durable.model.ids import check_name, check_new_run_id
from durable.model.run import Run, pending_run
from durable.model.tags import check_tags
from durable.ports import Created, Exists, KeyTaken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.app import App
    from durable.definitions import Workflow
    from durable.ports import Ports

OnConflict = Literal["return", "error", "replace-terminal"]


def registered(app: App[Any], workflow: Workflow[Any, Any] | str) -> Workflow[Any, Any]:
    """The app's workflow of this name and version, by a name alone the newest; raises WorkflowNotRegistered."""
    if isinstance(workflow, str):
        return app.newest(workflow)
    try:
        return app.find(workflow.name, workflow.version)
    except UnknownWorkflow:
        known = ", ".join(f"{other.name} {other.version}" for other in app.workflows) or "none"
        raise WorkflowNotRegistered(f"{workflow.name} {workflow.version}", known) from None


def new_run(
    ports: Ports, workflow: Workflow[Any, Any], text: str | None, *, id: str | None, tags: Sequence[str],
    headers: Mapping[str, str],
) -> tuple[Run, str | None]:
    """The record of a run that begins now, and its input where that is stored apart."""
    return pending_run(
        id=ports.new_id() if id is None else check_new_run_id(id),
        workflow=workflow.name,
        version=workflow.version,
        input=text,
        input_digest=codec.digest(text),
        writer=ports.new_id(),
        now=ports.clock.now(),
        tags=check_tags((*workflow.tags, *check_tags(tags))),
        headers=headers,
    )


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
