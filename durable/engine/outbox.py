"""What an ended run owes to others: its end to those who wait for it, and an end to what it has begun elsewhere.

The end is settled first, with a note that this is owed; then everybody is told; then the note goes. Whoever dies in between
leaves a run that is due, and the next wake tells everybody again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable.deletion import watchers_of
from durable.engine.children import end_message_id, how_it_ended
from durable.engine.effects import close, ends_an_effect, still_open
from durable.engine.entities import is_ended_entity, refuse_calls
from durable.engine.retention import kept_until
from durable.lanes import leave
from durable.model.envelope import Deliver
from durable.model.history import counting_entries, unpacked
from durable.model.ids import PREFIX_OF_ENTITIES
from durable.records import pages_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from durable.app import App
    from durable.model.entry import Entry, Kind
    from durable.model.run import Run, Settlement
    from durable.ports import Ports

CHILDREN: Final[frozenset[Kind]] = frozenset({"child", "start"})
"""Kinds of entries that stand for other runs."""

GRACE: Final = 30.0
"""How long after its end a run is due that owes something: time enough for the invocation that ended it."""


def with_debts(run: Run, entries: Iterable[Entry], settlement: Settlement) -> Settlement:
    """The same settlement, with a note of what is owed once the run has ended so."""
    if not settlement.terminal:
        return settlement
    tells = _somebody_waits(run) or run.workflow.startswith(PREFIX_OF_ENTITIES)
    if not (tells or run.lane is not None or any(True for _ in still_open(entries))):
        return settlement
    mode = "compensate" if run.cancel_requested == "compensate" else "graceful"
    return replace(settlement, outbox=mode, due_at=settlement.at + GRACE)


def with_debts_of_continued(run: Run, successor: Run, entries: Iterable[Entry], settlement: Settlement) -> Settlement:
    """The same of a run that goes on as another one: its children go on, and who waits for its end waits for the other's."""
    leaves = run.lane is not None and run.lane != successor.lane
    if not leaves and not any(entry.kind not in CHILDREN for entry in still_open(entries)):
        return settlement
    return replace(settlement, outbox="graceful", due_at=settlement.at + GRACE)


def kept_children(ports: Ports, run: Run) -> list[Entry]:
    """Children of iterations that are gone, which are to end with the run."""
    return [entry for page in pages_of(ports.store, run.id) for entry in page.kept if entry.kind == "start"]


def pay(app: App, ports: Ports, run: Run, entries: Sequence[Entry] | None = None) -> None:
    """Tells everybody about the end of the run; twice is harmless. `run` is the record as it was settled."""
    if is_ended_entity(run):
        refuse_calls(ports, run)
    if run.outbox is None:
        return
    if entries is None:
        items = [entry for page in pages_of(ports.store, run.id) for entry in (*page.entries, *page.kept)]
        entries = sorted(counting_entries(run, unpacked(items)), key=lambda entry: entry.order)
        entries = [entry for entry in entries if entry.epoch <= run.clean_epoch or not ends_an_effect(entry)]
    for opened in still_open(entries):
        if run.successor is None or opened.kind not in CHILDREN:
            close(ports, run, opened, run.outbox)
    if run.successor is None and _somebody_waits(run):
        end = how_it_ended(ports, run).to_text()
        for watcher in watchers_of(ports, run):
            ports.runs.send(
                Deliver(
                    run_id=watcher.run_id,
                    id=end_message_id(run, watcher.location),
                    name=watcher.location,
                    kind="child",
                    body=end,
                )
            )
    if run.lane is not None:
        leave(ports, run.lane, run.lineage or run.id)
    ports.store.clear_outbox(run.id, epoch=run.epoch, delete_at=kept_until(app, run))


def _somebody_waits(run: Run) -> bool:
    return run.watched or run.parent_location is not None
