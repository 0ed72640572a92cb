"""The store in memory: one lock around every request, so each is as atomic as DynamoDB's."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from durable.adapters.dynamodb import keys as layout
from durable.adapters.memory.partition import Partition
from durable.adapters.sizes import check_entry, check_idempotency_key, check_message, check_payload
from durable.errors import Fenced
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.run import ATTENTION
from durable.ports import (
    Acquired,
    Created,
    Exists,
    Held,
    KeyTaken,
    Missing,
    NotRunnable,
    Page,
    RunPage,
    RunSummary,
    Settled,
    WakesMoved,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from durable.model.run import Run, Settlement, Status
    from durable.ports import Payload

NEAR_SECONDS: Final = 3600.0
"""A due time further off than this gives way to the lease's end when a turn begins."""


class MemoryStore:
    """Implements `Store`; `page_size` is how many items one page of a history holds."""

    def __init__(self, *, page_size: int = 1000) -> None:
        self._page_size = page_size
        self._lock = Lock()
        self._partitions: dict[str, Partition] = {}
        self._keys: dict[str, str] = {}

    def create(
        self, run: Run, *, input: str | None = None, idempotency_key: str | None = None
    ) -> Created | Exists | KeyTaken:
        check_payload("the input", input)
        check_payload("the input", run.input)
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
        with self._lock:
            partition = self._partition(run.id)
            holder = None if idempotency_key is None else self._keys.get(idempotency_key)
            if partition.run is not None:
                if partition.run.writer == run.writer:
                    return Created(partition.run)
                return Exists(partition.run) if holder is None or holder == run.id else KeyTaken(holder)
            if holder is not None:
                return KeyTaken(holder)
            partition.run = run
            if input is not None:
                partition.put(layout.payload_key("input", 0), input)
            if idempotency_key is not None:
                self._keys[idempotency_key] = run.id
            return Created(run)

    def get(self, run_id: str) -> Run | None:
        with self._lock:
            return self._partition(run_id).run

    def get_payload(self, run_id: str, payload: Payload, *, epoch: int = 0) -> str | None:
        with self._lock:
            item = self._partition(run_id).items.get(layout.payload_key(payload, epoch))
            return item if isinstance(item, str) else None

    def acquire(
        self,
        run_id: str,
        *,
        owner: str,
        now: float,
        lease_until: float,
        code_version: str,
        due_is_near: bool,  # noqa: ARG002 - a guess that saves DynamoDB a request
    ) -> Acquired | Held | NotRunnable | Missing:
        with self._lock:
            run = self._partition(run_id).run
            if run is None:
                return Missing()
            if run.ended:
                return NotRunnable(run)
            if run.held_at(now):
                return Acquired(run) if run.lease_owner == owner else Held(run)
            if run.status == "blocked" and run.code_version == code_version:
                return NotRunnable(run)
            near = run.due_at is not None and run.due_at <= now + NEAR_SECONDS
            return Acquired(
                self._update(
                    replace(
                        run,
                        epoch=run.epoch + 1,
                        lease_owner=owner,
                        lease_until=lease_until,
                        due_at=run.due_at if near else lease_until,
                        started_at=now if run.started_at is None else run.started_at,
                    )
                )
            )

    def announce(self, run_id: str, *, now: float) -> bool:
        with self._lock:
            run = self._partition(run_id).run
            if run is None or not run.held_at(now):
                return False
            self._update(replace(run, wakes=run.wakes + 1))
            return True

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        with self._lock:
            self._update(replace(self._owned(run_id, epoch), fences=dict(fences)))

    def load(self, run_id: str, *, cursor: str | None = None, mailbox_only: bool = False) -> Page:
        low, high = (layout.MESSAGES, layout.LOADED[1]) if mailbox_only else layout.LOADED
        with self._lock:
            partition = self._partition(run_id)
            start = bisect_left(partition.keys, low) if cursor is None else bisect_right(partition.keys, cursor)
            end = bisect_left(partition.keys, high)
            found = partition.keys[start : min(start + self._page_size, end)]
            items = {sk: partition.items[sk] for sk in found}
            return Page(
                entries=[item for item in items.values() if isinstance(item, Entry)],
                messages=[item for item in items.values() if isinstance(item, StoredMessage)],
                payloads={layout.payload_of(sk): item for sk, item in items.items() if isinstance(item, str)},
                cursor=found[-1] if start + len(found) < end else None,
            )

    def put_entry(self, run_id: str, entry: Entry) -> None:
        check_entry(entry)
        sk = layout.entry_key(entry.key)
        with self._lock:
            partition = self._partition(run_id)
            old = partition.items.get(sk)
            if isinstance(old, Entry) and old.epoch > entry.epoch:
                raise Fenced(run_id, entry.epoch)
            partition.put(sk, entry)

    def put_payload(self, run_id: str, payload: Payload, text: str, *, epoch: int) -> None:
        check_payload(f"the {payload}", text)
        with self._lock:
            self._partition(run_id).put(layout.payload_key(payload, epoch), text)

    def put_message(self, run_id: str, message: StoredMessage) -> bool:
        check_message(message)
        sk = layout.message_key(message.id)
        with self._lock:
            partition = self._partition(run_id)
            if sk in partition.items:
                return False
            partition.put(sk, message)
            return True

    def delete_messages(self, run_id: str, message_ids: Sequence[str]) -> None:
        with self._lock:
            partition = self._partition(run_id)
            for message_id in message_ids:
                partition.delete(layout.message_key(message_id))

    def delete_entries(self, run_id: str, keys: Sequence[str], *, epoch: int) -> None:
        with self._lock:
            partition = self._partition(run_id)
            for key in keys:
                sk = layout.entry_key(key)
                entry = partition.items.get(sk)
                if isinstance(entry, Entry) and entry.epoch <= epoch:
                    partition.delete(sk)

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        check_payload("the output", settlement.output)
        with self._lock:
            run = self._owned(run_id, epoch)
            if run.lease_owner is None:
                if run.clean_epoch == epoch:
                    return Settled()  # the reply to an earlier try was lost
                raise Fenced(run_id, epoch)
            if wakes is not None and run.wakes != wakes:
                return WakesMoved(run.wakes)
            self._update(_settled(run, epoch, settlement))
            return Settled()

    def release(self, run_id: str, *, epoch: int, now: float) -> None:
        with self._lock:
            run = self._partition(run_id).run
            if run is not None and run.epoch == epoch and run.lease_owner is not None:
                self._update(replace(run, lease_owner=None, lease_until=None, due_at=now, released_epoch=epoch))

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        with self._lock:
            run = self._partition(run_id).run
            if run is None or run.ended:
                return run
            return self._update(
                replace(
                    run,
                    status="cancelled",
                    epoch=run.epoch + 1,
                    lease_owner=None,
                    lease_until=None,
                    due_at=None,
                    armed=None,
                    waiting_for=(),
                    reason=reason,
                    updated_at=now,
                    finished_at=now,
                )
            )

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        with self._lock:
            run = self._partition(run_id).run
            if run is None or run.status != "blocked":
                return run
            return self._update(replace(run, status="suspended", due_at=now, reason=None, updated_at=now))

    def list_runs(
        self,
        workflow: str,
        *,
        outcome: Status | Literal["open"] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        def wanted(run: Run) -> bool:
            if run.workflow != workflow:
                return False
            return outcome is None or (not run.ended if outcome == "open" else run.status == outcome)

        return self._listing(wanted, limit, cursor)

    def due_runs(self, *, before: float, limit: int) -> Sequence[str]:
        due = [(run.due_at, run.id) for run in self.runs if run.due_at is not None and run.due_at <= before]
        return [run_id for _, run_id in sorted(due)[:limit]]

    def runs_needing_attention(self, status: Status, *, limit: int, cursor: str | None = None) -> RunPage:
        return self._listing(lambda run: run.status == status and status in ATTENTION, limit, cursor)

    # For tests and the test environment: what is stored, at one instant.

    @property
    def runs(self) -> Sequence[Run]:
        """Every run record."""
        with self._lock:
            return [partition.run for partition in self._partitions.values() if partition.run is not None]

    def history(self, run_id: str) -> Sequence[Entry]:
        """Every entry that is stored, those that do not count included, in order of record."""
        with self._lock:
            items = self._partition(run_id).items.values()
            return sorted((item for item in items if isinstance(item, Entry)), key=lambda entry: entry.order)

    def mailbox(self, run_id: str) -> Sequence[StoredMessage]:
        """Every message that is stored, consumed ones not yet deleted included, in order of arrival."""
        with self._lock:
            items = self._partition(run_id).items.values()
            return sorted((item for item in items if isinstance(item, StoredMessage)), key=lambda item: item.order)

    def purge(self, run_id: str) -> None:
        """Forgets a run; the idempotency key that started it stays spent."""
        with self._lock:
            self._partitions.pop(run_id, None)

    def _partition(self, run_id: str) -> Partition:
        return self._partitions.setdefault(run_id, Partition())

    def _owned(self, run_id: str, epoch: int) -> Run:
        run = self._partition(run_id).run
        if run is None or run.epoch != epoch:
            raise Fenced(run_id, epoch)
        return run

    def _update(self, run: Run) -> Run:
        self._partition(run.id).run = run
        return run

    def _listing(self, wanted: Callable[[Run], bool], limit: int, cursor: str | None) -> RunPage:
        rows = sorted(
            ((layout.created_key(run.created_at, run.id), run) for run in self.runs if wanted(run)), reverse=True
        )
        page = list(islice((row for row in rows if cursor is None or row[0] < cursor), limit + 1))
        return RunPage(
            runs=[_summary(run) for _, run in page[:limit]],
            cursor=page[limit - 1][0] if len(page) > limit else None,
        )


def _summary(run: Run) -> RunSummary:
    return RunSummary(
        id=run.id,
        workflow=run.workflow,
        created_at=run.created_at,
        outcome=run.status if run.ended else None,
        tags=run.tags,
    )


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
        clean_epoch=epoch,
        lease_owner=None,
        lease_until=None,
    )
