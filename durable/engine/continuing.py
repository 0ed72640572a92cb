"""Ends a run and begins its successor in one transaction, and sees to it that no message is lost on the way.

| a message that ...                           | gets to the successor by                                          |
|----------------------------------------------|-------------------------------------------------------------------|
| was unread when the run ended                | its name in `carries`; beyond fifty it is copied before the end   |
| arrives while the turn ends                  | the count of wakes: the transaction fails and the turn looks again |
| reaches the run afterwards                   | the queue, under the same id and time of arrival                  |
| the run had consumed, and comes once more    | nothing: its tombstone tells the successor                        |
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable import codec
from durable.engine.lease import load_messages
from durable.engine.opening import begun, python_minor
from durable.errors import Misuse, StoreUnavailable
from durable.model.envelope import Deliver, Start
from durable.model.ids import generation_id, generation_of
from durable.model.run import Carried, Settlement, pending_run
from durable.ports import Exists, Settled, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.app import App
    from durable.engine.lease import Loaded
    from durable.model.attributes import Attributes
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ops.continuation import ContinuationOperation
    from durable.ports import Ports

NAMED: Final = 50
"""Messages that a run record names; it is read by every turn, so the rest is copied at once."""

NUMBERS_TRIED: Final = 20


class NoNumberFree(Misuse):
    """Runs with the next numbers of this lineage exist already."""


def settle(
    app: App, ports: Ports, run: Run, operation: ContinuationOperation, *, entries: Sequence[Entry],
    unread: Sequence[StoredMessage], annotations: tuple[tuple[str, ...], Attributes], wakes: int,
) -> Run | None:  # fmt: skip
    """None once the run has ended and its successor exists; the run record if something asked for a turn meanwhile."""
    app.find(operation.workflow.name, operation.workflow.version)
    lineage = run.lineage or run.id
    consumed = [message.id for entry in entries for message in entry.messages]
    if consumed:
        ports.store.bury(lineage, consumed)
    for number in _numbers(run):
        successor, stored_input = _successor(ports, run, operation, generation_id(lineage, number), annotations)
        if len(unread) > NAMED:
            if ports.store.get(successor.id) is not None:
                continue
            for message in unread[NAMED:]:
                ports.store.put_message(successor.id, message)
        carried = Carried(run.id, tuple(message.id for message in unread[:NAMED]))
        successor = replace(successor, carries=carried if unread else None, pruned=run.pruned or bool(consumed))
        answer = ports.store.continue_as_new(
            run.id, epoch=run.epoch, wakes=wakes, settlement=_ended(run, successor.id, ports.clock.now()),
            successor=successor, input=stored_input,
        )  # fmt: skip
        match answer:
            case Exists():
                continue
            case WakesMoved(run=moved):
                return moved
            case Settled():
                _announce(ports, successor.id)
                return None
    message = f'run "{run.id}" cannot continue: the next {NUMBERS_TRIED} numbers of its lineage are taken by other runs'
    raise NoNumberFree(message)


def with_carried(ports: Ports, run: Run, loaded: Loaded) -> Loaded:
    """In the first turn of a successor: copies the messages that it was left, before anything else happens."""
    if run.carries is None:
        return loaded
    known = {message.id for message in loaded.messages}
    before = ports.store.get(run.carries.run_id)
    left = [] if before is None else load_messages(ports, before)
    carried = [message for message in left if message.id in run.carries.message_ids]
    for message in carried:
        ports.store.put_message(run.id, message)
    ports.store.clear_carries(run.id, epoch=run.epoch)
    return replace(loaded, messages=[*loaded.messages, *(m for m in carried if m.id not in known)])


def led_on(message: StoredMessage, successor: str) -> Deliver:
    """A message that has reached a run too late, for the run that continues it."""
    return Deliver(
        run_id=successor, id=message.id, name=message.name, body=message.body, kind=message.kind,
        arrived_at=message.arrived_at, sequence=message.sequence,
    )  # fmt: skip


def _numbers(run: Run) -> range:
    first = generation_of(run.id, run.lineage) + 1
    return range(first, first + NUMBERS_TRIED)


def _successor(
    ports: Ports, run: Run, operation: ContinuationOperation, id: str, annotations: tuple[tuple[str, ...], Attributes]
) -> tuple[Run, str | None]:
    tags, attributes = annotations
    successor, stored_input = pending_run(
        id=id, workflow=operation.workflow.name, version=operation.workflow.version, input=operation.input,
        input_digest=codec.digest(operation.input), writer=ports.new_id(), now=ports.clock.now(), tags=tags,
    )  # fmt: skip
    lineage = run.lineage or run.id
    carried_on = replace(
        successor, lineage=lineage, parent=run.parent, deadline=run.deadline, attributes=dict(attributes)
    )
    return carried_on, stored_input


def _ended(run: Run, successor: str, now: float) -> Settlement:
    return Settlement(
        status="completed", at=now, started_at=begun(run), reason=f"goes on as {successor}", deadline=run.deadline,
        python=run.python or python_minor(),
    )  # fmt: skip


def _announce(ports: Ports, successor: str) -> None:
    try:
        ports.runs.send(Start(run_id=successor, id=ports.new_id()))
    except StoreUnavailable:
        return  # it is due soon: maintenance finds it
