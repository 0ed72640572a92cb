"""Run records in memory: who may work on a run, and how its turns and the run itself end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable.adapters.dynamodb import keys as layout
from durable.adapters.sizes import check_idempotency_key, check_payload
from durable.errors import Fenced
from durable.ports import Acquired, Created, Exists, Held, KeyTaken, Missing, NotRunnable, Settled, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.memory.partition import Table
    from durable.model.run import CancelMode, Run, Settlement, Watcher

NEAR_SECONDS: Final = 3600.0
"""A due time further off than this gives way to the lease's end when a turn begins."""

_NO_LEASE: Final = {"lease_owner": None, "lease_until": None}


class Lifecycle:
    """Creates, leases and ends runs."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def create(self, run: Run, input: str | None, idempotency_key: str | None) -> Created | Exists | KeyTaken:
        """Creates a run."""
        check_payload("the input", input)
        check_payload("the input", run.input)
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
        with self._table.lock:
            existing = self._table.partition(run.id).run
            holder = None if idempotency_key is None else self._table.idempotency.get(idempotency_key)
            if existing is not None:
                if existing.writer == run.writer:
                    return Created(existing)
                return Exists(existing) if holder is None or holder == run.id else KeyTaken(holder)
            if holder is not None:
                return KeyTaken(holder)
            self._write(run, input)
            if idempotency_key is not None:
                self._table.idempotency[idempotency_key] = run.id
            return Created(run)

    def acquire(
        self, run_id: str, *, owner: str, now: float, lease_until: float, code_version: str
    ) -> Acquired | Held | NotRunnable | Missing:
        """Takes the lease of a run that may go on."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is None:
                return Missing()
            if run.ended:
                return NotRunnable(run)
            if run.held_at(now):
                return Acquired(run) if run.lease_owner == owner else Held(run)
            if run.status == "blocked" and run.code_version == code_version:
                return NotRunnable(run)
            near = run.due_at is not None and run.due_at <= now + NEAR_SECONDS
            leased = replace(
                run,
                epoch=run.epoch + 1,
                lease_owner=owner,
                lease_until=lease_until,
                due_at=run.due_at if near else lease_until,
                started_at=now if run.started_at is None else run.started_at,
            )
            return Acquired(self._table.update(leased))

    def reopen(
        self, run_id: str, *, owner: str, now: float, lease_until: float, any_ended: bool
    ) -> Acquired | Held | NotRunnable | Missing:
        """Takes the lease of a run that has ended."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is None:
                return Missing()
            if run.held_at(now):
                return Acquired(run) if run.lease_owner == owner else Held(run)
            if run.deleting or not run.ended or not (any_ended or run.status in {"failed", "dead"}):
                return NotRunnable(run)
            reopened = replace(
                run,
                status="suspended",
                epoch=run.epoch + 1,
                lease_owner=owner,
                lease_until=lease_until,
                due_at=lease_until,
                updated_at=now,
                finished_at=None,
                output=None,
                output_stored=False,
                error=None,
                reason=None,
                ending=None,
                cancel_requested=None,
                outbox=None,
            )
            return Acquired(self._table.update(reopened))

    def announce(self, run_id: str, *, now: float) -> bool:
        """Makes the holder look again."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is None or not run.held_at(now):
                return False
            self._table.update(replace(run, wakes=run.wakes + 1))
            return True

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        """Ends a turn."""
        check_payload("the output", settlement.output)
        with self._table.lock:
            run = self._unsettled(run_id, epoch, wakes)
            if isinstance(run, Settled | WakesMoved):
                return run
            self._table.update(_settled(run, epoch, settlement))
            return Settled()

    def continue_as_new(
        self, run_id: str, *, epoch: int, wakes: int, settlement: Settlement, successor: Run, input: str | None
    ) -> Settled | WakesMoved | Exists:
        """Ends a run and creates the one that continues it."""
        check_payload("the output", settlement.output)
        check_payload("the input", input)
        check_payload("the input", successor.input)
        with self._table.lock:
            run = self._unsettled(run_id, epoch, wakes)
            if isinstance(run, Settled | WakesMoved):
                return run
            existing = self._table.partition(successor.id).run
            if existing is not None:
                return Exists(existing)
            self._table.update(replace(_settled(run, epoch, settlement), successor=successor.id))
            self._write(successor, input)
            return Settled()

    def release(self, run_id: str, *, epoch: int, now: float) -> None:
        """Gives a lease back."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is not None and run.epoch == epoch and run.lease_owner is not None:
                self._table.update(replace(run, due_at=now, released_epoch=epoch, **_NO_LEASE))

    def request_cancel(self, run_id: str, *, mode: CancelMode, now: float) -> Run | None:
        """Asks a run to end."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is None or run.ended:
                return run
            idle = run.status != "blocked" and not run.held_at(now)
            return self._table.update(
                replace(
                    run,
                    cancel_requested=mode if run.cancel_requested != "compensate" else "compensate",
                    wakes=run.wakes + 1,
                    due_at=now if idle else run.due_at,
                )
            )

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        """Ends a run at once."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is None or run.ended:
                return run
            ended = replace(
                run,
                status="cancelled",
                ending=None,
                epoch=run.epoch + 1,
                outbox="terminate",
                due_at=now,
                armed=None,
                waiting_for=(),
                reason=reason,
                updated_at=now,
                finished_at=now,
                **_NO_LEASE,
            )
            return self._table.update(ended)

    def watch(self, run_id: str, watched: str, watcher: Watcher) -> Run | None:
        """Notes who waits."""
        with self._table.lock:
            self._table.watchers.setdefault(watched, {})[watcher] = None
            run = self._table.partition(run_id).run
            return None if run is None else self._table.update(replace(run, watched=True, wakes=run.wakes + 1))

    def watchers(self, watched: str) -> Sequence[Watcher]:
        """Who waits."""
        with self._table.lock:
            return sorted(self._table.watchers.get(watched, ()), key=lambda one: (one.run_id, one.location))

    def clear_outbox(self, run_id: str, *, epoch: int, delete_at: float | None) -> None:
        """Everybody has been told."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is not None and run.ended and run.epoch == epoch:
                self._table.update(replace(run, outbox=None, due_at=delete_at))

    def postpone_deletion(self, run_id: str, *, epoch: int, until: float) -> None:
        """Lets a run stay longer."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is not None and _over(run, epoch) and not run.deleting and run.due_at is not None:
                self._table.update(replace(run, due_at=until))

    def mark_for_deletion(self, run_id: str, *, epoch: int, now: float) -> bool:
        """Keeps a run ended."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is None or not _over(run, epoch):
                return False
            self._table.update(replace(run, deleting=True, due_at=now if run.due_at is None else run.due_at))
            return True

    def empty(self, run_id: str) -> None:
        """Forgets all but the record."""
        with self._table.lock:
            partition = self._table.partition(run_id)
            for sk in list(partition.keys):
                partition.delete(sk)
            self._table.tasks.pop(run_id, None)

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        """Lets a blocked run try again."""
        with self._table.lock:
            run = self._table.partition(run_id).run
            if run is None or run.status != "blocked":
                return run
            return self._table.update(replace(run, status="suspended", due_at=now, reason=None, updated_at=now))

    def delete(self, run_id: str) -> None:
        """Forgets a run; the idempotency key that started it stays spent."""
        with self._table.lock:
            partition = self._table.partitions.get(run_id)
            if partition is None or partition.run is None:
                return
            run = self._table.partitions.pop(run_id).run
            self._table.replies.pop(run_id, None)
            self._table.tasks.pop(run_id, None)
            if run is not None and run.successor is None:
                self._table.tombstones.pop(run.lineage or run_id, None)
                self._table.watchers.pop(run.lineage or run_id, None)

    def _unsettled(self, run_id: str, epoch: int, wakes: int | None) -> Run | Settled | WakesMoved:
        """The record if its turn may settle, else what to answer."""
        run = self._table.owned(run_id, epoch)
        if run.lease_owner is None:
            if run.clean_epoch == epoch:
                return Settled()  # the reply to an earlier try was lost
            raise Fenced(run_id, epoch)
        return run if wakes is None or run.wakes == wakes else WakesMoved(run.wakes, run)

    def _write(self, run: Run, input: str | None) -> None:
        partition = self._table.partition(run.id)
        partition.run = run
        if input is not None:
            partition.put(layout.payload_key("input", 0), input)


def _over(run: Run, epoch: int) -> bool:
    return run.ended and run.outbox is None and run.epoch == epoch


def _settled(run: Run, epoch: int, settlement: Settlement) -> Run:
    return replace(
        run,
        status=settlement.status,
        updated_at=settlement.at,
        started_at=settlement.started_at,
        finished_at=settlement.at if settlement.terminal else None,
        due_at=settlement.due_at,
        armed=settlement.armed,
        waiting_for=settlement.waiting_for,
        waits=settlement.waits,
        waits_digest=settlement.waits_digest,
        reason=settlement.reason,
        code_version=settlement.code_version,
        python=settlement.python,
        output=settlement.output,
        output_stored=settlement.output_stored,
        error=settlement.error,
        undelivered=settlement.undelivered,
        late_results=settlement.late_results,
        ending=settlement.ending,
        failed_at=settlement.failed_at,
        outbox=settlement.outbox,
        deadline=settlement.deadline,
        clean_epoch=epoch,
        **_NO_LEASE,
    )
