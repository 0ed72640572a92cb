"""The store, with every payload in the form in which it is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from durable.adapters.texts import values
from durable.errors import StoreUnavailable
from durable.model.answers import Acquired, Chunk, Created, Exists, Held, NotRunnable, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.texts.wrapping import Wrapping
    from durable.model.answers import KeyTaken, Missing, Page, Payload, Refused, Settled
    from durable.model.entry import Entry
    from durable.model.lane import Lane, Ticket
    from durable.model.message import StoredMessage
    from durable.model.run import CancelMode, Run, Settlement, Watcher
    from durable.model.subscription import BufferedEvent, Subscription, SubscriptionPage
    from durable.model.task import TaskRow
    from durable.model.transaction import TransactItem
    from durable.ports import Store


class TextStore:
    """Implements `Store` over another one; what carries no payload is the other's own method."""

    def __init__(self, store: Store, wrapping: Wrapping) -> None:
        self._store = store
        self._wrapping = wrapping

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    # Runs

    def create(
        self, run: Run, *, input: str | None = None, idempotency_key: str | None = None
    ) -> Created | Exists | KeyTaken:
        given = None if input is None else self._wrapping.out(input, run.id, "the input")
        answer = self._store.create(values.run_out(self._wrapping, run), input=given, idempotency_key=idempotency_key)
        return self._answer(answer)

    def get(self, run_id: str) -> Run | None:
        return self._run(self._store.get(run_id))

    def acquire(
        self, run_id: str, *, owner: str, now: float, lease_until: float, code_version: str, due_is_near: bool
    ) -> Acquired | Held | NotRunnable | Missing:
        answer = self._store.acquire(
            run_id, owner=owner, now=now, lease_until=lease_until, code_version=code_version, due_is_near=due_is_near
        )
        return self._acquired(answer, now)

    def reopen(
        self, run_id: str, *, owner: str, now: float, lease_until: float, any_ended: bool = False
    ) -> Acquired | Held | NotRunnable | Missing:
        answer = self._store.reopen(run_id, owner=owner, now=now, lease_until=lease_until, any_ended=any_ended)
        return self._acquired(answer, now)

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        stored = values.settlement_out(self._wrapping, run_id, settlement)
        return self._answer(self._store.settle(run_id, epoch=epoch, wakes=wakes, settlement=stored))

    def continue_as_new(
        self, run_id: str, *, epoch: int, wakes: int, settlement: Settlement, successor: Run, input: str | None
    ) -> Settled | WakesMoved | Exists:
        given = None if input is None else self._wrapping.out(input, successor.id, "the input")
        answer = self._store.continue_as_new(
            run_id, epoch=epoch, wakes=wakes, settlement=values.settlement_out(self._wrapping, run_id, settlement),
            successor=values.run_out(self._wrapping, successor), input=given,
        )  # fmt: skip
        return self._answer(answer)

    def request_cancel(self, run_id: str, *, mode: CancelMode, now: float) -> Run | None:
        return self._run(self._store.request_cancel(run_id, mode=mode, now=now))

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        told = values.reason_out(self._wrapping, run_id, reason, readable=True) or ""
        return self._run(self._store.terminate(run_id, now=now, reason=told))

    def watch(self, run_id: str, watched: str, watcher: Watcher) -> Run | None:
        return self._run(self._store.watch(run_id, watched, watcher))

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        return self._run(self._store.unblock(run_id, now=now))

    # Histories and mailboxes

    def load(self, run_id: str, *, cursor: str | None = None, mailbox_only: bool = False) -> Page:
        page = self._store.load(run_id, cursor=cursor, mailbox_only=mailbox_only)
        entries = [values.entry_in(self._wrapping, entry) for entry in page.entries]
        kept = [values.entry_in(self._wrapping, entry) for entry in page.kept]
        messages = [values.message_in(self._wrapping, message) for message in page.messages]
        payloads = {name: self._wrapping.read(text) for name, text in page.payloads.items()}
        return replace(
            page, entries=entries, kept=kept, messages=messages, payloads=payloads,
            unreadable=values.why_unreadable([*entries, *kept], messages),
        )  # fmt: skip

    def put_entry(self, run_id: str, entry: Entry) -> None:
        self._store.put_entry(run_id, values.entry_out(self._wrapping, run_id, entry))

    def transact(self, run_id: str, entry: Entry, items: Sequence[TransactItem]) -> Refused | None:
        return self._store.transact(run_id, values.entry_out(self._wrapping, run_id, entry), items)

    def keep_compensations(self, run_id: str, entries: Sequence[Entry]) -> None:
        self._store.keep_compensations(run_id, [values.entry_out(self._wrapping, run_id, entry) for entry in entries])

    def get_payload(self, run_id: str, payload: Payload, *, epoch: int = 0) -> str | None:
        return self._needed(self._store.get_payload(run_id, payload, epoch=epoch))

    def put_payload(self, run_id: str, payload: Payload, text: str, *, epoch: int) -> None:
        self._store.put_payload(run_id, payload, self._wrapping.out(text, run_id, f"the {payload}"), epoch=epoch)

    def put_message(self, run_id: str, message: StoredMessage) -> bool:
        return self._store.put_message(run_id, values.message_out(self._wrapping, run_id, message))

    # What others read

    def put_reply(self, run_id: str, message_id: str, reply: str, *, expires_at: float) -> None:
        stored = self._wrapping.out(reply, run_id, "the response")
        self._store.put_reply(run_id, message_id, stored, expires_at=expires_at)

    def get_reply(self, run_id: str, message_id: str) -> str | None:
        return self._needed(self._store.get_reply(run_id, message_id))

    def put_state(self, run_id: str, key: str, text: str, *, epoch: int) -> None:
        self._store.put_state(run_id, key, self._wrapping.out(text, run_id, f'the state "{key}"'), epoch=epoch)

    def get_state(self, run_id: str, key: str) -> str | None:
        return self._needed(self._store.get_state(run_id, key))

    def states(self, run_id: str) -> Mapping[str, str]:
        return {key: self._wrapping.needed(text) for key, text in self._store.states(run_id).items()}

    def append_stream(self, run_id: str, key: str, chunk_id: str, text: str) -> None:
        stored = self._wrapping.out(text, run_id, f'a chunk of stream "{key}"')
        self._store.append_stream(run_id, key, chunk_id, stored)

    def read_stream(self, run_id: str, key: str, *, after: str | None = None, limit: int = 100) -> Sequence[Chunk]:
        chunks = self._store.read_stream(run_id, key, after=after, limit=limit)
        return [Chunk(chunk.id, self._wrapping.needed(chunk.text)) for chunk in chunks]

    # Tasks, lanes, events

    def start_task(self, run_id: str, task_id: str, *, worker: str, now: float, expires_at: float) -> TaskRow:
        return self._row(self._store.start_task(run_id, task_id, worker=worker, now=now, expires_at=expires_at))

    def beat_task(self, run_id: str, task_id: str, *, now: float, progress: str | None) -> TaskRow:
        told = None if progress is None else self._wrapping.out(progress, run_id, "the progress")
        return self._row(self._store.beat_task(run_id, task_id, now=now, progress=told))

    def close_task(self, run_id: str, task_id: str, *, reason: str, expires_at: float) -> TaskRow:
        return self._row(self._store.close_task(run_id, task_id, reason=reason, expires_at=expires_at))

    def get_task(self, run_id: str, task_id: str) -> TaskRow | None:
        row = self._store.get_task(run_id, task_id)
        return None if row is None else self._row(row)

    def find_ticket(self, name: str, holder: str) -> Ticket | None:
        ticket = self._store.find_ticket(name, holder)
        return None if ticket is None else replace(ticket, action=self._wrapping.needed(ticket.action))

    def write_lane(
        self, lane: Lane, *, expected_version: int | None, put: Sequence[Ticket] = (), remove: Sequence[Ticket] = ()
    ) -> bool:
        put = [
            replace(ticket, action=self._wrapping.out(ticket.action, ticket.holder.partition("|")[0], "a ticket"))
            for ticket in put
        ]
        remove = [replace(ticket, action="") for ticket in remove]  # found by its rank and holder
        return self._store.write_lane(lane, expected_version=expected_version, put=put, remove=remove)

    def put_subscription(self, subscription: Subscription) -> None:
        self._store.put_subscription(values.subscription_out(self._wrapping, subscription))

    def subscriptions(self, event: str, *, cursor: str | None = None, limit: int = 100) -> SubscriptionPage:
        page = self._store.subscriptions(event, cursor=cursor, limit=limit)
        return replace(page, subscriptions=[values.subscription_in(self._wrapping, one) for one in page.subscriptions])

    def put_buffered(self, event: BufferedEvent) -> None:
        self._store.put_buffered(self._buffered_out(event))

    def close_buffered(self, event: BufferedEvent) -> None:
        self._store.close_buffered(self._buffered_out(event))

    def buffered(self, event: str, *, now: float) -> Sequence[BufferedEvent]:
        kept = self._store.buffered(event, now=now)
        return [replace(one, body=self._wrapping.needed(one.body)) for one in kept]

    # Inside

    def _run(self, run: Run | None) -> Run | None:
        return None if run is None else values.run_in(self._wrapping, run)

    def _answer(self, answer: Any) -> Any:
        if isinstance(answer, Created | Exists | Acquired | Held | NotRunnable | WakesMoved):
            return replace(answer, run=values.run_in(self._wrapping, answer.run))
        return answer

    def _acquired(self, answer: Any, now: float) -> Any:
        """A turn that cannot begin because a service does not answer gives the lease back at once."""
        try:
            return self._answer(answer)
        except StoreUnavailable:
            if isinstance(answer, Acquired):
                self._store.release(answer.run.id, epoch=answer.run.epoch, now=now)
            raise

    def _needed(self, stored: str | None) -> str | None:
        return None if stored is None else self._wrapping.needed(stored)

    def _row(self, row: TaskRow) -> TaskRow:
        return row if row.progress is None else replace(row, progress=self._wrapping.needed(row.progress))

    def _buffered_out(self, event: BufferedEvent) -> BufferedEvent:
        owner = values.owner_of_event(event.event)
        return replace(event, body=self._wrapping.out(event.body, owner, f'event "{event.event}"'))
