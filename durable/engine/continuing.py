"""Ends a run and begins its successor in one transaction, and sees to it that no message is lost on the way.

| a message that ...                           | gets to the successor by                                          |
|----------------------------------------------|-------------------------------------------------------------------|
| was unread when the run ended                | its name in `carries`; beyond fifty it is copied before the end   |
| arrives while the turn ends                  | the count of wakes: the transaction fails and the turn looks again |
| reaches the run afterwards                   | the queue, under the same id and time of arrival                  |
| the run had consumed, and comes once more    | nothing: its tombstone tells the successor                        |
| reports on what the run has begun            | nothing: nobody waits for that any more, and it is closed         |
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable import codec
from durable.engine.lease import load_messages
from durable.engine.opening import begun, python_minor
from durable.engine.outbox import pay, with_debts_of_continued
from durable.engine.retention import retained
from durable.engine.settling import as_settled
from durable.errors import Misuse, RunawayContinuation, StoreUnavailable
from durable.model.envelope import Deliver, Start
from durable.model.ids import generation_id, generation_of
from durable.model.run import Carried, Settlement, pending_run
from durable.ports import Exists, Settled, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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

PACED: Final = 1_000
"""So often the pace of a lineage is looked at, in generations."""
SECONDS_A_GENERATION: Final = 1.0
"""A lineage that continues faster than this on average, and does not wait in between, does nothing but continue."""


class NoNumberFree(Misuse):
    """Runs with the next numbers of this lineage exist already."""


class Handover:
    """Settles one turn whose run continues; tried again when something asks for a turn meanwhile.

    What one try has buried and copied the next need not: only so does it come to an end while messages stream in.
    """

    def __init__(self, app: App, ports: Ports, run: Run) -> None:
        self._app = app
        self._ports = ports
        self._run = run
        self._lineage = run.lineage or run.id
        self._buried: set[str] = set()
        self._copied: set[str] = set()

    def settle(
        self, operation: ContinuationOperation, *, entries: Sequence[Entry], unread: Sequence[StoredMessage],
        annotations: tuple[tuple[str, ...], Attributes], wakes: int, watched: bool,
    ) -> Run | None:  # fmt: skip
        """None once the run has ended and its successor exists; the run record if the turn must look again."""
        self._app.find(operation.workflow.name, operation.workflow.version)
        self._run = replace(self._run, watched=watched)
        unread = [message for message in unread if message.awaits_consumption]  # the others are about what ends here
        self._bury(entries)
        first = generation_of(self._run.id, self._run.lineage) + 1
        self._check_pace(first, entries)
        for number in range(first, first + NUMBERS_TRIED):
            successor, stored_input = self._successor(operation, generation_id(self._lineage, number), annotations)
            if not self._copy(successor.id, unread[NAMED:]):
                continue
            named = tuple(message.id for message in unread[:NAMED])
            settlement = _ended(self._run, successor.id, self._ports.clock.now())
            settlement = with_debts_of_continued(self._run, successor, entries, settlement)
            answer = self._ports.store.continue_as_new(
                self._run.id, epoch=self._run.epoch, wakes=wakes,
                settlement=retained(self._app, self._run, settlement),
                successor=replace(successor, carries=Carried(self._run.id, named) if named else None),
                input=stored_input,
            )  # fmt: skip
            match answer:
                case Exists():
                    continue
                case WakesMoved(run=moved):
                    return moved
                case Settled():
                    self._announce(successor.id)
                    ended = replace(as_settled(self._run, settlement), successor=successor.id)
                    pay(self._app, self._ports, ended, entries)
                    return None
        message = (
            f'run "{self._run.id}" cannot continue: other runs have the next {NUMBERS_TRIED} numbers of its lineage'
        )
        raise NoNumberFree(message)

    def _check_pace(self, generation: int, entries: Sequence[Entry]) -> None:
        """Raises RunawayContinuation: looked at once in a thousand generations, so it costs nothing."""
        if generation % PACED != 0 or any(entry.messages or entry.kind == "sleep" for entry in entries):
            return
        first = self._ports.store.get(self._lineage)
        age = None if first is None else self._ports.clock.now() - first.created_at
        if age is not None and age < generation * SECONDS_A_GENERATION:
            raise RunawayContinuation(generation, age)

    def _bury(self, entries: Sequence[Entry]) -> None:
        """The successor does not see our entries, and a message may come twice."""
        consumed = {message.id for entry in entries for message in entry.messages} - self._buried
        if consumed:
            self._ports.store.bury(self._lineage, sorted(consumed))
            self._buried |= consumed

    def _copy(self, successor: str, surplus: Sequence[StoredMessage]) -> bool:
        """False if a run of this id exists: it is not for us to give it messages."""
        if not surplus:
            return True
        if self._ports.store.get(successor) is not None:
            return False
        for message in surplus:
            if message.id not in self._copied:
                self._ports.store.put_message(successor, message)
                self._copied.add(message.id)
        return True

    def _successor(
        self, operation: ContinuationOperation, id: str, annotations: tuple[tuple[str, ...], Attributes]
    ) -> tuple[Run, str | None]:
        tags, attributes = annotations
        run, stored_input = pending_run(
            id=id, workflow=operation.workflow.name, version=operation.workflow.version, input=operation.input,
            input_digest=codec.digest(operation.input), writer=self._ports.new_id(), now=self._ports.clock.now(),
            tags=tags,
        )  # fmt: skip
        before = self._run
        inherited = replace(
            run, lineage=self._lineage, parent=before.parent, deadline=before.deadline, attributes=dict(attributes),
            pruned=before.pruned or bool(self._buried), parent_location=before.parent_location, watched=before.watched,
            headers=before.headers, lane=operation.lane,
        )  # fmt: skip
        return inherited, stored_input

    def _announce(self, successor: str) -> None:
        try:
            self._ports.runs.send(Start(run_id=successor, id=self._ports.new_id()))
        except StoreUnavailable:
            return  # it is due soon: maintenance finds it


def with_carried(ports: Ports, run: Run, loaded: Loaded) -> Loaded:
    """In the first turn of a successor: copies the messages that it was left, before anything else happens."""
    if run.carries is None:
        return loaded
    known = {message.id for message in loaded.messages}
    before = ports.store.get(run.carries.run_id)
    left: Iterable[StoredMessage] = () if before is None else load_messages(ports, before)
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


def _ended(run: Run, successor: str, now: float) -> Settlement:
    return Settlement(
        status="completed", at=now, started_at=begun(run), reason=f"goes on as {successor}", deadline=run.deadline,
        python=run.python or python_minor(),
    )  # fmt: skip
