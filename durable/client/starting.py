"""Starting a run: one record, then one envelope; the same start twice is one run."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, assert_never

from durable import codec, lanes
from durable.errors import (
    IdempotencyKeySpent,
    InvalidName,
    LaneFull,
    RunAlreadyExists,
    StoreUnavailable,
    UnknownWorkflow,
    WorkflowNotRegistered,
)
from durable.lanes import Waiting
from durable.model.envelope import Start
from durable.model.ids import PREFIX_OF_ENTITIES, check_name, check_new_run_id
from durable.model.lane import Full, slot_reason
from durable.model.run import Run, pending_run
from durable.model.tags import check_tags
from durable.ports import Created, Exists, KeyTaken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.app import App
    from durable.definitions import Workflow
    from durable.model.lane import LaneSpec
    from durable.ports import Ports

OnConflict = Literal["return", "error", "replace-terminal"]


def registered(app: App[Any], workflow: Workflow[Any, Any] | str) -> Workflow[Any, Any]:
    """The app's workflow of this name and version, by a name alone the newest; raises WorkflowNotRegistered."""
    name = workflow if isinstance(workflow, str) else workflow.name
    if name.startswith(PREFIX_OF_ENTITIES):
        raise InvalidName(
            "workflow", name, "no entity: it begins with the first call of it, client.entity(Cart, key).call(...)"
        )
    if isinstance(workflow, str):
        return app.newest(workflow)
    try:
        return app.find(workflow.name, workflow.version)
    except UnknownWorkflow:
        known = ", ".join(f"{other.name} {other.version}" for other in app.workflows) or "none"
        raise WorkflowNotRegistered(f"{workflow.name} {workflow.version}", known) from None


def new_run(
    ports: Ports, workflow: Workflow[Any, Any], text: str | None, *, id: str | None, tags: Sequence[str],
    headers: Mapping[str, str], lane: LaneSpec | None,
) -> tuple[Run, str | None]:  # fmt: skip
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
        lane=None if lane is None else lane.name,
    )


def start(
    ports: Ports, run: Run, stored_input: str | None, *, idempotency_key: str | None, on_conflict: OnConflict,
    lane: LaneSpec | None,
) -> str:  # fmt: skip
    """Creates the run, or finds the one that the same start has created; its id.

    A run that needs a slot goes into its lane first, so that one which is refused was never there. It begins when it has
    its slot. Whoever dies in between leaves a ticket without a run, which the lane takes out by itself.

    Raises:
        LaneFull: No more runs may wait in the lane.
        RunAlreadyExists: The id, or the key, belongs to a run with another workflow or input, or `on_conflict="error"`.
        IdempotencyKeySpent: The key's run has been deleted.
    """
    if idempotency_key is not None:
        check_name("idempotency key", idempotency_key)
    slot = None if lane is None else lanes.enter_run(ports, lane, run.id)
    if isinstance(slot, Full):
        existing = ports.store.get(run.id)
        if existing is None:
            raise LaneFull(run.workflow, run.lane or "", slot.limit)
        return _existing(ports, existing, run, on_conflict)
    if isinstance(slot, Waiting):
        # Its lane wakes it, so maintenance need not.
        run = replace(run, due_at=None, reason=slot_reason(run.lane or ""))
    answer = ports.store.create(run, input=stored_input, idempotency_key=idempotency_key)
    if run.lane is not None and not isinstance(answer, Created):
        _leave_unless_ours(ports, run.lane, run.id)
    match answer:
        case Created():
            # Its grant starts a run that waits. It may have come before there was a run to start.
            if not isinstance(slot, Waiting) or run.lane is None or lanes.holds(ports, run.lane, run.id):
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


def id_of_key(idempotency_key: str) -> str:
    """The id of the run that a key starts, where it must be known before the key is looked up."""
    return f"key-{sha256(idempotency_key.encode()).hexdigest()[:32]}"


def _leave_unless_ours(ports: Ports, lane: str, run_id: str) -> None:
    """Takes out of the lane what a start has put in that came to nothing, unless a run that exists stands there."""
    existing = ports.store.get(run_id)
    others = existing is not None and not existing.ended and existing.lane != lane
    lanes.leave(ports, lane, run_id, unless_alive=not others)


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
