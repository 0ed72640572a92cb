"""A turn: acquire the run, load and replay its history, go as far as possible, settle.

This page is the protocol. What it calls says how; the order of the lines says why nothing is lost:
a timer is armed before the settle that names it, the settle fails if anything asked for a turn meanwhile, and an
invocation that lost its lease learns of it at its next write.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from durable.engine import outbox, settling
from durable.engine.admission import admitted, in_line
from durable.engine.attention import call_for
from durable.engine.cache import HistoryCache
from durable.engine.ceiling import Ceiling
from durable.engine.continuing import Handover, with_carried
from durable.engine.lease import Lease, Loaded, acquire, dead_turns, load, load_messages
from durable.engine.opening import links_of, open_execution
from durable.engine.pauses import Continues, Ended, OutOfTime, Pause, Quiescent, Stopped
from durable.engine.pruning import Pruner
from durable.engine.repeating import repeat_effects
from durable.engine.retention import retained
from durable.engine.rollback import Rollback, done_steps, kept_entries, outcome_of
from durable.engine.session import Session
from durable.engine.stopping import never_began, verdict, with_deadline
from durable.engine.writer import EntryWriter
from durable.errors import Fenced, LimitExceeded, Misuse, PayloadUnreadable, StoreUnavailable
from durable.logs import name_workflow
from durable.model.envelope import Wake
from durable.ports import Settled, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.app import App
    from durable.engine.options import EngineOptions
    from durable.engine.steps import StepRunner
    from durable.engine.stopping import Ending
    from durable.execution import Execution
    from durable.model.envelope import StartSpec
    from durable.model.run import Run, Settlement, Status
    from durable.ops.operation import WaitOperation
    from durable.ports import Ports

log = logging.getLogger("durable")

SHORTEST_TURN = 0.5
"""With less time than this, in seconds, a wake is left to the next invocation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Takes turns of any run."""

    app: App
    ports: Ports
    options: EngineOptions
    code_version: str
    new_runner: Callable[[], StepRunner]
    cache: HistoryCache

    def take(
        self, run_id: str, *, ends: float, longest: float, due_is_near: bool, start: StartSpec | None = None
    ) -> str | None:
        """Takes one turn, or leaves the run to whoever holds it; of a run that has continued as new, its successor.

        `ends` is when the invocation does, by the monotonic clock; `longest` what a whole invocation has for a step;
        `start` how a run that is missing begins.
        Raises RunGone, and StoreUnavailable when a service does not answer: the lease is given back and the wake must come again.
        """
        if ends - self.ports.clock.monotonic() < SHORTEST_TURN:
            message = f"the invocation has less than {SHORTEST_TURN} s left for run {run_id}"
            raise StoreUnavailable(message)
        lease = acquire(
            self.ports, run_id, ends=ends, options=self.options, code_version=self.code_version, due_is_near=due_is_near,
            start=start,
        )  # fmt: skip
        if lease is None:
            return None
        if not isinstance(lease, Lease):
            outbox.pay(self.app, self.ports, lease)
            return lease.successor
        name_workflow(lease.run.workflow)
        try:
            self._go(lease, longest)
        except Fenced as lost:
            log.warning("turn abandoned: %s", lost)
        except StoreUnavailable:
            self._give_back(lease)  # nobody's fault; any other error counts as the death of this turn
            raise
        return None

    def _go(self, lease: Lease, longest: float) -> None:
        run, loaded = load(self.ports, lease.run, self.cache, self.options)
        if self._blocked_unread(lease, loaded):
            return
        run = with_deadline(self.app, run, self.ports.clock.now())
        lease = Lease(run, lease.ends)
        loaded = with_carried(self.ports, run, loaded)
        if sent := repeat_effects(self.ports, run, loaded.entries):
            known = {message.id for message in loaded.messages}
            loaded = replace(loaded, messages=[*loaded.messages, *(m for m in sent if m.id not in known)])
        consumed = loaded.consumed
        if obsolete := [message.id for message in loaded.messages if message.id in consumed]:
            self.ports.store.delete_messages(run.id, obsolete)
        writer = EntryWriter(self.ports, run, loaded.entries[-1].at if loaded.entries else 0.0)
        pruner = Pruner(self.ports, run, writer, worthwhile=self.options.prune_from)
        writer.after, writer.history, writer.pruned = pruner.after, pruner.history, lambda: pruner.pruned
        loaded = replace(loaded, entries=pruner.begin(loaded.entries), buried=consumed)
        lease = Lease(replace(run, pruned=pruner.pruned), lease.ends)
        if dead_turns(loaded, run.epoch, run.clean_epoch, run.released_epoch) > self.options.dead_turns:
            self._insist(lease, loaded, writer, settling.dead(run, self.ports.clock.now()))
            return
        admitted_lease = self._in_line(lease, loaded, writer)
        if admitted_lease is None:
            return
        lease, run = admitted_lease, admitted_lease.run
        if run.ending is not None:
            self._roll_back(lease, loaded, writer, run.ending, longest)
            return
        ending = "cancelled" if run.cancel_requested and never_began(run) else verdict(run, self.ports.clock.now())
        if ending is not None and not run.died:  # else it is replayed, to know what the lost turn may have begun
            self._stop(lease, loaded, writer, ending)
            return
        try:
            execution = open_execution(self.app, run, loaded, links_of(self.ports, run))
        except (Misuse, LimitExceeded) as misuse:
            self._blocked(lease, loaded, writer, misuse)
            return
        try:
            session = Session(
                ports=self.ports, lease=lease, loaded=loaded, execution=execution, writer=writer,
                runner=self.new_runner(), options=self.options, longest=longest,
                code_version=self.code_version, carriers=self.app.carriers, ceiling=self._ceiling(run, loaded, writer),
            )  # fmt: skip
            try:
                self._play(lease, loaded, writer, execution, session)
            finally:
                session.close()
        finally:
            for trouble in execution.unwind():
                log.warning("run %s: while suspending: %s", run.id, trouble)

    def _ceiling(self, run: Run, loaded: Loaded, writer: EntryWriter) -> Ceiling:
        workflow = self.app.find(run.workflow, run.version)
        return Ceiling(run, workflow, loaded.entries, writer)

    def _in_line(self, lease: Lease, loaded: Loaded, writer: EntryWriter) -> Lease | None:
        """The lease, if the run may go on; a singleton that has no slot is left as it was, and None given."""
        run = lease.run
        while not (run.cancel_requested and never_began(run)) and not admitted(self.app, self.ports, run):
            settlement = in_line(run, self.ports.clock.now())
            moved = self._settle(lease, loaded, writer, settlement, run.wakes)
            if moved is None:
                return None
            lease = lease.knowing(moved)
            run = lease.run  # perhaps it has its slot
        return lease

    def _play(self, lease: Lease, loaded: Loaded, writer: EntryWriter, execution: Execution, session: Session) -> None:
        """Goes on until the run record says so, looking again whenever something asked for a turn meanwhile."""
        handover = Handover(self.app, self.ports, lease.run)
        try:
            session.begin()
            pause = session.go()
            while (moved := self._end(lease, loaded, writer, execution, session, pause, handover)) is not None:
                session.look_again(moved)
                pause = session.go()
        except (Misuse, LimitExceeded) as misuse:
            self._blocked(lease, loaded, writer, misuse, session.verdict)
            return
        if isinstance(pause, OutOfTime):
            self._wake(lease.run.id, "goes on")

    def _end(
        self, lease: Lease, loaded: Loaded, writer: EntryWriter, execution: Execution, session: Session, pause: Pause,
        handover: Handover,
    ) -> Run | None:  # fmt: skip
        """Settles, unless something asked for a turn meanwhile; a run that goes on elsewhere need not look again."""
        writer.flush()
        lease = Lease(session.run, lease.ends)
        if isinstance(pause, Continues):
            writer.confirm()  # what it buries must have been consumed by entries that count
            return handover.settle(
                pause.operation, watched=session.run.watched, entries=[*loaded.entries, *writer.written], unread=session.messages,
                annotations=session.annotations, wakes=session.wakes,
            )  # fmt: skip
        settlement = self._settlement(lease, execution, session, pause)
        if not isinstance(pause, OutOfTime):  # else it has not come to all of them
            settlement = replace(settlement, late_results=session.late_results)
        if isinstance(pause, Stopped) or (isinstance(pause, Ended) and session.has_failed):
            settlement = self._undone_first(lease.run, loaded, writer, settlement)
        return self._settle(lease, loaded, writer, settlement, None if isinstance(pause, OutOfTime) else session.wakes)

    def _settlement(
        self, lease: Lease, execution: Execution, session: Session, pause: Ended | Stopped | OutOfTime | Quiescent
    ) -> Settlement:
        now = self.ports.clock.now()
        match pause:
            case Ended():
                return settling.ended(self.app, self.ports, lease.run, execution, unread=session.unread, now=now)
            case Stopped(ending):
                return settling.stopped(lease.run, ending, unread=session.unread, now=now)
            case OutOfTime(waits):
                return self._suspended(lease, waits, due_at=now, armed=lease.run.armed)
            case Quiescent(waits, due_at):
                armed = settling.arm(self.ports, lease.run, due_at)
                return self._suspended(lease, waits, due_at=due_at, armed=armed)
            case _:
                assert_never(pause)

    def _suspended(
        self, lease: Lease, waits: Sequence[WaitOperation], *, due_at: float | None, armed: float | None
    ) -> Settlement:
        return settling.suspended(
            lease.run, waits, due_at=due_at, armed=armed, code_version=self.code_version, now=self.ports.clock.now()
        )

    def _settle(
        self, lease: Lease, loaded: Loaded, writer: EntryWriter, settlement: Settlement, wakes: int | None = None
    ) -> Run | None:
        """The run record if the run must be looked at again; None once the turn is over."""
        entries = [*loaded.entries, *writer.written]
        if settlement.terminal and writer.pruned():
            entries += outbox.kept_children(self.ports, lease.run)
        late_results = max(settlement.late_results, lease.run.late_results)
        settlement = outbox.with_debts(lease.run, entries, replace(settlement, late_results=late_results))
        settlement = retained(self.app, lease.run, settlement)
        answer = self.ports.store.settle(lease.run.id, epoch=lease.run.epoch, wakes=wakes, settlement=settlement)
        match answer:
            case WakesMoved(run=moved):
                return moved
            case Settled():
                call_for(lease.run, settlement)
                if settlement.outbox is not None:
                    outbox.pay(self.app, self.ports, settling.as_settled(lease.run, settlement), entries)
                if settlement.status == "rolling_back" and settlement.due_at == settlement.at:
                    self._wake(lease.run.id, "rolls back")
                if not settlement.terminal and settlement.ending is None:
                    self.cache.keep(lease.run, writer.history(), loaded.payloads)
                return None

    def _wake(self, run_id: str, reason: str) -> None:
        self.ports.runs.send(Wake(run_id=run_id, id=self.ports.new_id(), reason=reason))

    # Ends that the code has no say in

    def _blocked(
        self, lease: Lease, loaded: Loaded, writer: EntryWriter, misuse: Misuse | LimitExceeded,
        ending: Ending | None = None,
    ) -> None:  # fmt: skip
        """The run waits for other code, unless it is to end in any case."""
        now = self.ports.clock.now()
        ending = ending or verdict(lease.run, now)
        if ending is not None and lease.run.ending is None:
            self._stop(lease, loaded, writer, ending)
            return
        settlement = settling.blocked(lease.run, misuse, self.code_version, now)
        moved = self._settle(lease, loaded, writer, settlement, lease.run.wakes)
        if moved is not None:  # perhaps somebody asks for its end
            self._blocked(lease.knowing(moved), loaded, writer, misuse)

    def _blocked_unread(self, lease: Lease, loaded: Loaded) -> bool:
        """Blocks a run whose history cannot be read, whatever is asked of it: nobody knows what there is to undo or to end."""
        if loaded.unreadable is None:
            return False
        problem = PayloadUnreadable(loaded.unreadable)
        log.error("run %s: %s", lease.run.id, problem)
        settlement = settling.blocked(lease.run, problem, self.code_version, self.ports.clock.now())
        epoch, wakes = lease.run.epoch, lease.run.wakes
        while True:
            answer = self.ports.store.settle(lease.run.id, epoch=epoch, wakes=wakes, settlement=settlement)
            if isinstance(answer, Settled):
                call_for(lease.run, settlement)
                return True
            wakes = answer.wakes

    def _stop(self, lease: Lease, loaded: Loaded, writer: EntryWriter, ending: Ending) -> None:
        settlement = settling.stopped(lease.run, ending, unread=loaded.unread, now=self.ports.clock.now())
        self._insist(lease, loaded, writer, self._undone_first(lease.run, loaded, writer, settlement))

    def _undone_first(self, run: Run, loaded: Loaded, writer: EntryWriter, settlement: Settlement) -> Settlement:
        entries = [*loaded.entries, *writer.written]
        steps = done_steps(run, entries, kept_entries(self.ports, run.id, entries))
        if any(outcome_of(step, entries) is None for step in steps):
            return settling.undone_first(settlement)
        return settlement

    def _roll_back(self, lease: Lease, loaded: Loaded, writer: EntryWriter, ending: Status, longest: float) -> None:
        run = lease.run
        rollback = Rollback(
            ports=self.ports, lease=lease, loaded=loaded, writer=writer, runner=self.new_runner(), options=self.options,
            longest=longest, carriers=self.app.carriers, packages=self.app.packages,
        )  # fmt: skip
        try:
            pause = rollback.go()
        except (Misuse, LimitExceeded) as misuse:
            self._blocked(lease, loaded, writer, misuse)
            return
        now = self.ports.clock.now()
        if isinstance(pause, Ended):
            settlement = settling.undone(
                self.ports, run, ending, full_error=loaded.payloads.get("output"), not_undone=rollback.failed,
                unread=loaded.unread, now=now,
            )  # fmt: skip
        else:
            due_at = pause.due_at if isinstance(pause, Quiescent) else now
            armed = settling.arm(self.ports, run, due_at) if isinstance(pause, Quiescent) else run.armed
            settlement = settling.undoing(run, due_at=due_at, armed=armed, now=now)
        self._insist(lease, loaded, writer, settlement)

    def _insist(self, lease: Lease, loaded: Loaded, writer: EntryWriter, settlement: Settlement) -> None:
        """Settles whatever asked for a turn meanwhile; a message that came is counted."""
        moved = self._settle(lease, loaded, writer, settlement, lease.run.wakes)
        while moved is not None:
            lease = lease.knowing(moved)
            unread = replace(loaded, messages=list(load_messages(self.ports, lease.run))).unread
            settlement = settling.due_at_once(replace(settlement, undelivered=unread), self.ports.clock.now())
            moved = self._settle(lease, loaded, writer, settlement, moved.wakes)

    def _give_back(self, lease: Lease) -> None:
        """A turn that failed for a reason of its own: others may take over at once instead of waiting for the lease."""
        try:
            self.ports.store.release(lease.run.id, epoch=lease.run.epoch, now=self.ports.clock.now())
        except Exception:
            log.exception("run %s: the lease could not be given back; it runs out by itself", lease.run.id)
