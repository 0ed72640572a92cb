"""A turn: acquire the run, load and replay its history, go as far as possible, settle.

This page is the protocol. What it calls says how; the order of the lines says why nothing is lost:
a timer is armed before the settle that names it, the settle fails if anything asked for a turn meanwhile, and an
invocation that lost its lease learns of it at its next write.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from durable.engine import settling
from durable.engine.cache import HistoryCache
from durable.engine.lease import Lease, Loaded, acquire, load
from durable.engine.opening import open_execution
from durable.engine.session import Ended, OutOfTime, Pause, Quiescent, Session, dead_turns
from durable.engine.writer import EntryWriter
from durable.errors import Fenced, LimitExceeded, Misuse, StoreUnavailable
from durable.model.envelope import Wake
from durable.ports import Settled, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.app import App
    from durable.engine.options import EngineOptions
    from durable.engine.steps import StepRunner
    from durable.execution import Execution
    from durable.model.run import Settlement
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

    def take(self, run_id: str, *, ends: float, longest: float, due_is_near: bool) -> None:
        """Takes one turn, or leaves the run to whoever holds it.

        `ends` is when the invocation does, by the monotonic clock; `longest` what a whole invocation has for a step.
        Raises StoreUnavailable when a service does not answer: the lease is given back and the wake must come again.
        """
        if ends - self.ports.clock.monotonic() < SHORTEST_TURN:
            message = f"the invocation has less than {SHORTEST_TURN} s left for run {run_id}"
            raise StoreUnavailable(message)
        lease = acquire(
            self.ports, run_id, ends=ends, options=self.options, code_version=self.code_version, due_is_near=due_is_near
        )
        if lease is None:
            return
        try:
            self._go(lease, longest)
        except Fenced as lost:
            log.warning("turn abandoned: %s", lost)
        except Exception:
            self._give_back(lease)
            raise

    def _go(self, lease: Lease, longest: float) -> None:
        run, loaded = load(self.ports, lease.run, self.cache)
        lease = Lease(run, lease.ends)
        consumed = loaded.consumed
        if obsolete := [message.id for message in loaded.messages if message.id in consumed]:
            self.ports.store.delete_messages(run.id, obsolete)
        writer = EntryWriter(self.ports, run, loaded.entries[-1].at if loaded.entries else 0.0)
        if dead_turns(loaded, run.epoch, run.clean_epoch, run.released_epoch) > self.options.dead_turns:
            self._settle(lease, loaded, writer, settling.dead(run, self.ports.clock.now()))
            return
        try:
            execution = open_execution(self.app, run, loaded)
        except (Misuse, LimitExceeded) as misuse:
            self._settle(
                lease, loaded, writer, settling.blocked(run, misuse, self.code_version, self.ports.clock.now())
            )
            return
        try:
            session = Session(
                ports=self.ports, lease=lease, loaded=loaded, execution=execution, writer=writer,
                runner=self.new_runner(), options=self.options, longest=longest,
            )  # fmt: skip
            self._play(lease, loaded, writer, execution, session)
            session.close()
        finally:
            for trouble in execution.unwind():
                log.warning("run %s: while suspending: %s", run.id, trouble)

    def _play(self, lease: Lease, loaded: Loaded, writer: EntryWriter, execution: Execution, session: Session) -> None:
        """Goes on until the run record says so, looking again whenever something asked for a turn meanwhile."""
        try:
            session.begin()
            pause = session.go()
            while (moved := self._end(lease, loaded, writer, execution, session, pause)) is not None:
                session.look_again(moved)
                pause = session.go()
        except (Misuse, LimitExceeded) as misuse:
            self._settle(
                lease, loaded, writer, settling.blocked(lease.run, misuse, self.code_version, self.ports.clock.now())
            )
            return
        if isinstance(pause, OutOfTime):
            self.ports.runs.send(Wake(run_id=lease.run.id, id=self.ports.new_id(), reason="goes on"))

    def _end(
        self, lease: Lease, loaded: Loaded, writer: EntryWriter, execution: Execution, session: Session, pause: Pause
    ) -> int | None:
        """Settles, unless something asked for a turn meanwhile; a run that goes on elsewhere need not look again."""
        writer.flush()
        settlement = self._settlement(lease, execution, session, pause)
        return self._settle(lease, loaded, writer, settlement, None if isinstance(pause, OutOfTime) else session.wakes)

    def _settlement(self, lease: Lease, execution: Execution, session: Session, pause: Pause) -> Settlement:
        now = self.ports.clock.now()
        match pause:
            case Ended():
                return settling.ended(self.app, self.ports, lease.run, execution, unread=session.unread, now=now)
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
    ) -> int | None:
        """The new count of wakes if the run must be looked at again; None once the turn is over."""
        answer = self.ports.store.settle(lease.run.id, epoch=lease.run.epoch, wakes=wakes, settlement=settlement)
        match answer:
            case WakesMoved(count):
                return count
            case Settled():
                if not settlement.terminal:
                    self.cache.keep(lease.run, [*loaded.entries, *writer.written], loaded.payloads)
                return None

    def _give_back(self, lease: Lease) -> None:
        """A turn that failed for a reason of its own: others may take over at once instead of waiting for the lease."""
        try:
            self.ports.store.release(lease.run.id, epoch=lease.run.epoch, now=self.ports.clock.now())
        except Exception:
            log.exception("run %s: the lease could not be given back; it runs out by itself", lease.run.id)
