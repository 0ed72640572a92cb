"""Ways to break one rule each of how runs work with others: effects that are dispatched and closed, children, remote steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from durable.adapters.memory import MemoryStore
from durable.engine import children, continuing, effects, outbox, repeating, settling, turn
from durable.engine.dispatching import Dispatcher
from durable.engine.lease import Loaded
from durable.engine.turn import Turns
from durable.engine.writer import EntryWriter
from durable.model.entry import Entry
from durable.model.run import Run, Settlement, Watcher
from durable.ops.call import CallOperation
from durable.ports import Ports
from tests.simulation.mutations import Mutation


class UnwokenWatchStore(MemoryStore):
    """Does not tell the turn under way that somebody wants to know of the end."""

    def watch(self, run_id: str, watched: str, watcher: Watcher) -> Run | None:
        run = super().watch(run_id, watched, watcher)
        return None if run is None else self._update(replace(run, wakes=run.wakes - 1))


class UnblockedStore(MemoryStore):
    """Finds no run that older code has left blocked."""

    def blocked_runs(self, *, not_under: str, limit: int) -> Sequence[str]:
        return []


def owed(lease: Any, loaded: Loaded, writer: EntryWriter, settlement: Settlement) -> tuple[Settlement, list[Entry]]:
    entries = [*loaded.entries, *writer.written]
    return outbox.with_debts(lease.run, entries, settlement), entries


def told_first(
    self: Turns, lease: Any, loaded: Loaded, writer: EntryWriter, settlement: Settlement, wakes: int | None = None, *,
    settle: Any = Turns._settle,
) -> Any:  # fmt: skip
    """Tells others of an end before it is settled."""
    noted, entries = owed(lease, loaded, writer, settlement)
    if noted.outbox is not None:
        outbox.pay(self.app, self.ports, settling.as_settled(lease.run, noted), entries)
    return settle(self, lease, loaded, writer, settlement, wakes)


def without_note(
    self: Turns, lease: Any, loaded: Loaded, writer: EntryWriter, settlement: Settlement, wakes: int | None = None, *,
    debts: Any = outbox.with_debts,
) -> Any:  # fmt: skip
    """Tells others of an end that is settled without a note that they have yet to be told."""
    noted = debts(lease.run, [*loaded.entries, *writer.written], settlement)
    silent = replace(noted, outbox=None, due_at=settlement.due_at)
    answer = self.ports.store.settle(lease.run.id, epoch=lease.run.epoch, wakes=wakes, settlement=silent)
    moved = getattr(answer, "run", None)
    if moved is None and noted.outbox is not None:
        outbox.pay(self.app, self.ports, settling.as_settled(lease.run, noted), [*loaded.entries, *writer.written])
    return moved


def cleared_first(app: Any, ports: Ports, run: Run, entries: Any = None, *, pay: Any = outbox.pay) -> None:
    """Says that everybody was told, and tells them then."""
    ports.store.clear_outbox(run.id, epoch=run.epoch)
    pay(app, ports, run, entries)


def performed_first(self: Dispatcher, operation: Any, *, opened: Any = Dispatcher._opened) -> Entry:
    """Dispatches before it is recorded."""
    value = operation.opening(self._stamp)
    entry = self._writer._entry(operation, f"?{operation.next_attempt}", self._writer._n + 1, {"value": value})
    effects.perform(self._ports, self._run, entry)
    return opened(self, operation)


def flushed_only(self: EntryWriter) -> None:
    """Does not look whether the run is still ours."""
    self.flush()


def looked_before(ports: Ports, run: Run, watcher: Watcher, *, watch: Any = children.watch) -> Run:
    """Looks whether the run has ended, and waits for its end then."""
    seen = ports.store.get(run.id) or run
    watch(ports, run, watcher)
    return seen


def ask_only_who_is_there(ports: Ports, parent: Run, start: Any, mode: Any) -> None:
    """Closes no child that does not exist yet."""
    children.close_child(ports, start.id, mode)


def unwatched(self: Any, *args: Any, successor: Any = continuing.Handover._successor) -> Any:
    """Does not tell the successor who waits."""
    run, stored_input = successor(self, *args)
    return replace(run, watched=False, parent_location=None), stored_input


MUTATIONS_OF_FAMILIES = [
    Mutation("told_before_the_end", "an end is settled before others are told of it", "children",
             patches=[(Turns, "_settle", told_first)]),
    Mutation("no_note", "what is owed is noted with the end", "children", patches=[(Turns, "_settle", without_note)]),
    Mutation("note_cleared_first", "the note goes after everybody was told", "children",
             patches=[(outbox, "pay", cleared_first)]),
    Mutation("nobody_told", "the end of a run is told to those who wait", "children",
             patches=[(outbox, "watchers_of", lambda *_: ())]),
    Mutation("children_left", "what a run has begun ends with it", "children",
             patches=[(outbox, "still_open", lambda _: iter(()))]),
    Mutation("performed_before_recorded", "an effect is recorded before it is performed", "remote",
             patches=[(Dispatcher, "_opened", performed_first)]),
    Mutation("unconfirmed_dispatch", "a lost turn dispatches nothing", "remote",
             patches=[(EntryWriter, "confirm", flushed_only)]),
    Mutation("not_repeated", "a take-over repeats what a lost turn may not have performed", "children",
             patches=[(turn, "repeat_effects", lambda *_: [])]),
    Mutation("close_not_repeated", "a take-over closes what a lost turn may not have closed", "limited",
             patches=[(repeating, "_finish", lambda *_: None)]),
    Mutation("any_attempt", "a result counts for its own attempt only", "remote",
             patches=[(CallOperation, "answers", lambda *_: True)]),
    Mutation("losers_left", "what the code does not wait for any more is closed", "remote",
             patches=[(Dispatcher, "close_cancelled", lambda _: None)]),
    Mutation("watched_after_looking", "who waits is noted before the look at the run", "children",
             rarely_seen=True, patches=[(children, "watch", looked_before)]),
    Mutation("watch_unnoticed", "a turn that is about to end a run learns who waits", "children",
             store=UnwokenWatchStore),
    Mutation("late_child", "a child that is closed before it was started never begins", "children", rarely_seen=True,
             patches=[(effects, "close_started", ask_only_who_is_there)]),
    Mutation("unsure_ends_trusted", "a terminated run closes what its last turn may not have closed", "limited",
             patches=[(outbox, "ends_an_effect", lambda _: False)]),
    Mutation("blocked_for_good", "new code is tried on runs that older code has blocked", "deployed",
             store=UnblockedStore),
    Mutation("successor_unwatched", "who waits for a run waits for the last of its lineage", "relays",
             patches=[(continuing.Handover, "_successor", unwatched)]),
]  # fmt: skip
