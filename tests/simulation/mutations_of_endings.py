"""Ways to break one rule of how runs end each: rolled back, cancelled, or continued as another one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from durable.adapters.memory import MemoryStore
from durable.engine import continuing, orchestrator, rollback, session, settling, turn
from durable.engine.continuing import Handover
from durable.engine.lease import Loaded
from durable.engine.pruning import Pruner
from durable.engine.session import Session
from durable.engine.stopping import CancellationRecord
from durable.engine.turn import Turns
from durable.engine.undoing import Undo
from durable.engine.writer import EntryWriter
from durable.execution import Execution, Raised
from durable.model.entry import Entry
from durable.model.run import CancelMode, Run, Settlement
from durable.ports import Exists, Ports, Settled, WakesMoved
from tests.simulation.mutations import Mutation
from tests.simulation.mutations_of_pruning import delete_first


class UndoForgettingStore(MemoryStore):
    """Does not keep how steps of pruned iterations are undone."""

    def keep_compensations(self, run_id: str, entries: Sequence[Entry]) -> None:
        pass


class WeakeningStore(MemoryStore):
    """Lets the latest request decide how a run ends."""

    def request_cancel(self, run_id: str, *, mode: CancelMode, now: float) -> Run | None:
        run = super().request_cancel(run_id, mode=mode, now=now)
        return run if run is None or run.ended else self._update(replace(run, cancel_requested=mode))


class UnhurriedStore(MemoryStore):
    """Does not make a run due that is asked to end."""

    def request_cancel(self, run_id: str, *, mode: CancelMode, now: float) -> Run | None:
        before = self.get(run_id)
        run = super().request_cancel(run_id, mode=mode, now=now)
        if before is None or run is None or run.ended:
            return run
        return self._update(replace(run, due_at=before.due_at))


class DeafContinuationStore(MemoryStore):
    """Continues a run whatever has come meanwhile."""

    def continue_as_new(
        self, run_id: str, *, epoch: int, wakes: int, settlement: Settlement, successor: Run, input: str | None
    ) -> Settled | WakesMoved | Exists:
        run = self.get(run_id)
        wakes = wakes if run is None else run.wakes
        return super().continue_as_new(
            run_id, epoch=epoch, wakes=wakes, settlement=settlement, successor=successor, input=input
        )


def unrecorded(kind: type, *, write: Any = EntryWriter.write) -> Any:
    """Hands on, without writing it, what is recorded about operations of a kind."""

    def careless(self: EntryWriter, operation: Any, *, mark: str | None = None, **facts: Any) -> Entry:
        if isinstance(operation, kind) and mark is None:
            return self._entry(operation, operation.mark, self._n + 1, facts)
        return write(self, operation, mark=mark, **facts)

    return careless


def cancel_every_turn(self: Execution, entry: Entry, *, cancel: Any = Execution._cancel) -> None:
    """Forgets during replay that the code was told already."""
    cancel(self, entry)
    self.cancelled = self.live


def not_copied(ports: Ports, run: Run, loaded: Loaded) -> Loaded:
    """Forgets the messages that it was left."""
    if run.carries is not None:
        ports.store.clear_carries(run.id, epoch=run.epoch)
    return loaded


def cleared_first(ports: Ports, run: Run, loaded: Loaded, *, copy: Any = turn.with_carried) -> Loaded:
    """Says that the messages are copied, and copies them then."""
    if run.carries is not None:
        ports.store.clear_carries(run.id, epoch=run.epoch)
    return copy(ports, run, loaded)


def unpruned(self: Handover, *args: Any, successor: Any = Handover._successor) -> Any:
    """Does not tell the successor that there are tombstones."""
    run, stored_input = successor(self, *args)
    return replace(run, pruned=False), stored_input


def stay(self: Turns, run_id: str, *, take: Any = Turns.take, **facts: Any) -> None:
    """Does not lead messages on to the run that continues this one."""
    take(self, run_id, **facts)


MUTATIONS_OF_ENDINGS = [
    Mutation(
        "undone_in_order", "the latest step is undone first", "saga",
        patches=[(rollback, "done_steps", lambda *args, steps=rollback.done_steps: steps(*args)[::-1])],
    ),
    Mutation(
        "unrecorded_undo", "the outcome of an undo is recorded", "saga",
        patches=[(EntryWriter, "write", unrecorded(Undo))],
    ),
    Mutation(
        "undone_every_turn", "what is undone is not undone again", "saga",
        patches=[(rollback, "outcome_of", lambda *_: None)],
    ),
    Mutation(
        "failed_at_once", "a run ends after its steps are undone", "saga",
        patches=[(settling, "undone_first", lambda settlement: settlement)],
    ),
    Mutation("undo_forgotten", "how to undo a step outlives its entry", "saga", store=UndoForgettingStore),
    Mutation(
        "undo_kept_late", "it is kept before the entry goes", "saga", patches=[(Pruner, "_delete", delete_first)]
    ),
    Mutation(
        "kept_ignored", "a rollback undoes steps of pruned iterations", "saga",
        patches=[(rollback, "kept_entries", lambda *_: ())],
    ),
    Mutation(
        "own_timer_missed", "a rollback that waits takes a timer that fires early for its own", "saga",
        rarely_seen=True, patches=[(settling, "due_at_once", lambda settlement, _: settlement)],
    ),
    Mutation(
        "unrecorded_cancellation", "a cancellation is recorded", "cancelled",
        patches=[(EntryWriter, "write", unrecorded(CancellationRecord))],
    ),
    Mutation(
        "clean_up_cancelled", "the clean-up is not cancelled too", "cancelled",
        patches=[(Execution, "_cancel", cancel_every_turn)],
    ),
    Mutation(
        "compensation_ignored", "a compensating cancellation stops the code", "cancelled",
        patches=[(turn, "verdict", lambda *_: None), (session, "verdict", lambda *_: None)],
    ),
    Mutation(
        "compensation_after_clean_up", "a compensating cancellation counts until the run has ended", "cancelled",
        patches=[(Session, "has_failed", property(lambda self: isinstance(
            self._execution.outcome, Raised) and not self._execution.ended_by_cancellation))],
    ),
    Mutation("weakened", "compensate is never weakened to graceful", "cancelled", store=WeakeningStore),
    Mutation("unhurried", "a run that is asked to end is due", "cancelled", store=UnhurriedStore),
    Mutation(
        "carried_not_copied", "unread messages go over to the successor", "continued",
        patches=[(turn, "with_carried", not_copied)],
    ),
    Mutation(
        "cleared_before_copied", "their names are kept until they are copied", "continued",
        patches=[(turn, "with_carried", cleared_first)],
    ),
    Mutation(
        "surplus_not_copied", "messages that the record cannot name are copied", "continued",
        patches=[(continuing, "NAMED", 2), (Handover, "_copy", lambda *_: True)],
    ),
    Mutation(
        "consumed_not_buried", "what a run has consumed stays consumed in its successor", "continued",
        patches=[(Handover, "_bury", lambda *_: None)],
    ),
    Mutation(
        "successor_unpruned", "the successor looks tombstones up", "continued",
        patches=[(Handover, "_successor", unpruned)],
    ),
    Mutation("deaf_continuation", "a message that comes meanwhile is not left behind", "continued", store=DeafContinuationStore),
    Mutation(
        "not_led_on", "a message that comes later is led on", "continued",
        patches=[(orchestrator.Turns, "take", stay)],
    ),
]  # fmt: skip
