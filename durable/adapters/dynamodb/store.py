"""The store on DynamoDB: each method is one request, unless what it calls says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from durable.adapters.clock import SystemClock
from durable.adapters.dynamodb import items
from durable.adapters.dynamodb.creation import Creation
from durable.adapters.dynamodb.history import History
from durable.adapters.dynamodb.lanes import Lanes
from durable.adapters.dynamodb.lifecycle import Lifecycle
from durable.adapters.dynamodb.listing import Listing
from durable.adapters.dynamodb.mailbox import Mailbox
from durable.adapters.dynamodb.published import Publications
from durable.adapters.dynamodb.requests import Requests
from durable.adapters.dynamodb.subscriptions import Subscriptions
from durable.adapters.dynamodb.tasks import Tasks
from durable.adapters.dynamodb.transactions import Transactions
from durable.model.subscription import Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from types_boto3_dynamodb.client import DynamoDBClient

    from durable.model.attributes import Attributes
    from durable.model.entry import Entry
    from durable.model.lane import Lane, LaneState, Ticket
    from durable.model.message import StoredMessage
    from durable.model.run import CancelMode, Cut, Run, Settlement, Status, Watcher
    from durable.model.subscription import BufferedEvent, Subscription, SubscriptionPage
    from durable.model.task import TaskRow
    from durable.model.transaction import TransactItem
    from durable.ports import (
        Acquired,
        Chunk,
        Condition,
        Created,
        Exists,
        Held,
        KeyTaken,
        Missing,
        NotRunnable,
        Page,
        Payload,
        Refused,
        RunPage,
        Settled,
        WakesMoved,
    )  # fmt: skip


SHARDS: Final = 4
"""Partitions of each index. May grow at any time, never shrink: rows stay where they were written."""


class DynamoStore:
    """Implements `Store` on one table; `page_items` makes pages of a history smaller than DynamoDB's 1 MB."""

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        *,
        shards: int = SHARDS,
        page_items: int | None = None,
        pause: Callable[[float], None] | None = None,
    ) -> None:
        requests = Requests(client, table, pause or SystemClock().sleep)
        self._requests = requests
        self._creation = Creation(requests, shards)
        self._lifecycle = Lifecycle(requests, shards)
        self._history = History(requests, page_items)
        self._mailbox = Mailbox(requests)
        self._published = Publications(requests)
        self._lanes = Lanes(requests, shards)
        self._subscriptions = Subscriptions(requests)
        self._tasks = Tasks(requests)
        self._transactions = Transactions(client, table)
        self._listing = Listing(requests, shards)

    def create(
        self, run: Run, *, input: str | None = None, idempotency_key: str | None = None
    ) -> Created | Exists | KeyTaken:
        return self._creation.create(run, input, idempotency_key)

    def get(self, run_id: str) -> Run | None:
        item = self._requests.get(items.key(run_id))
        return None if item is None else items.read_run(item)

    def get_payload(self, run_id: str, payload: Payload, *, epoch: int = 0) -> str | None:
        return self._history.get_payload(run_id, payload, epoch=epoch)

    def acquire(
        self, run_id: str, *, owner: str, now: float, lease_until: float, code_version: str, due_is_near: bool
    ) -> Acquired | Held | NotRunnable | Missing:
        return self._lifecycle.acquire(
            run_id, owner=owner, now=now, lease_until=lease_until, code_version=code_version, due_is_near=due_is_near
        )

    def reopen(
        self, run_id: str, *, owner: str, now: float, lease_until: float, any_ended: bool = False
    ) -> Acquired | Held | NotRunnable | Missing:
        return self._lifecycle.reopen(run_id, owner=owner, now=now, lease_until=lease_until, any_ended=any_ended)

    def announce(self, run_id: str, *, now: float) -> bool:
        return self._lifecycle.announce(run_id, now=now)

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        self._history.record_fences(run_id, epoch=epoch, fences=fences)

    def record_floor(self, run_id: str, *, epoch: int, n: int) -> None:
        self._history.record_floor(run_id, epoch=epoch, n=n)

    def mark_pruned(self, run_id: str, *, epoch: int) -> None:
        self._history.mark_pruned(run_id, epoch=epoch)

    def record_cut(self, run_id: str, *, epoch: int, cut: Cut, unburied: Sequence[str]) -> None:
        self._history.record_cut(run_id, epoch=epoch, cut=cut, unburied=unburied)

    def annotate(self, run_id: str, *, epoch: int, tags: tuple[str, ...] | None, attributes: Attributes | None) -> None:
        self._history.annotate(run_id, epoch=epoch, tags=tags, attributes=attributes)

    def clear_carries(self, run_id: str, *, epoch: int) -> None:
        self._history.clear_carries(run_id, epoch=epoch)

    def load(self, run_id: str, *, cursor: str | None = None, mailbox_only: bool = False) -> Page:
        return self._history.load(run_id, cursor, mailbox_only=mailbox_only)

    def put_entry(self, run_id: str, entry: Entry) -> None:
        self._history.put_entry(run_id, entry)

    def transact(self, run_id: str, entry: Entry, items: Sequence[TransactItem]) -> Refused | None:
        return self._transactions.write(run_id, entry, items)

    def put_payload(self, run_id: str, payload: Payload, text: str, *, epoch: int) -> None:
        self._history.put_payload(run_id, payload, text, epoch=epoch)

    def put_message(self, run_id: str, message: StoredMessage) -> bool:
        return self._mailbox.put(run_id, message)

    def delete_messages(self, run_id: str, message_ids: Sequence[str]) -> None:
        self._mailbox.delete(run_id, message_ids)

    def delete_entries(self, run_id: str, keys: Sequence[str], *, epoch: int) -> None:
        self._history.delete_entries(run_id, keys, epoch=epoch)

    def keep_compensations(self, run_id: str, entries: Sequence[Entry]) -> None:
        self._history.keep_compensations(run_id, entries)

    def bury(self, run_id: str, message_ids: Sequence[str]) -> None:
        self._mailbox.bury(run_id, message_ids)

    def buried(self, run_id: str, message_ids: Sequence[str]) -> set[str]:
        return self._mailbox.buried(run_id, message_ids)

    def put_reply(self, run_id: str, message_id: str, reply: str, *, expires_at: float) -> None:
        self._mailbox.put_reply(run_id, message_id, reply, expires_at=expires_at)

    def get_reply(self, run_id: str, message_id: str) -> str | None:
        return self._mailbox.get_reply(run_id, message_id)

    def put_state(self, run_id: str, key: str, text: str, *, epoch: int) -> None:
        self._published.put_state(run_id, key, text, epoch=epoch)

    def get_state(self, run_id: str, key: str) -> str | None:
        return self._published.get_state(run_id, key)

    def states(self, run_id: str) -> Mapping[str, str]:
        return self._published.states(run_id)

    def append_stream(self, run_id: str, key: str, chunk_id: str, text: str) -> None:
        self._published.append_stream(run_id, key, chunk_id, text)

    def read_stream(self, run_id: str, key: str, *, after: str | None = None, limit: int = 100) -> Sequence[Chunk]:
        return self._published.read_stream(run_id, key, after, limit)

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        return self._lifecycle.settle(run_id, epoch=epoch, wakes=wakes, settlement=settlement)

    def continue_as_new(
        self, run_id: str, *, epoch: int, wakes: int, settlement: Settlement, successor: Run, input: str | None
    ) -> Settled | WakesMoved | Exists:
        return self._lifecycle.continue_as_new(
            run_id, epoch=epoch, wakes=wakes, settlement=settlement, successor=successor, input=input
        )

    def release(self, run_id: str, *, epoch: int, now: float) -> None:
        self._lifecycle.release(run_id, epoch=epoch, now=now)

    def request_cancel(self, run_id: str, *, mode: CancelMode, now: float) -> Run | None:
        return self._lifecycle.request_cancel(run_id, mode=mode, now=now)

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        return self._lifecycle.terminate(run_id, now=now, reason=reason)

    def watch(self, run_id: str, watched: str, watcher: Watcher) -> Run | None:
        return self._lifecycle.watch(run_id, watched, watcher)

    def watchers(self, watched: str) -> Sequence[Watcher]:
        return self._lifecycle.watchers(watched)

    def clear_outbox(self, run_id: str, *, epoch: int, delete_at: float | None = None) -> None:
        self._lifecycle.clear_outbox(run_id, epoch=epoch, delete_at=delete_at)

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        return self._lifecycle.unblock(run_id, now=now)

    def list_runs(
        self,
        workflow: str,
        *,
        outcome: Status | Literal["open"] | None = None,
        tag: str | None = None,
        where: Sequence[Condition] = (),
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        return self._listing.runs(workflow, outcome=outcome, tag=tag, where=where, limit=limit, cursor=cursor)

    def due_runs(self, *, before: float, limit: int) -> Sequence[str]:
        return self._listing.due(before=before, limit=limit)

    def runs_needing_attention(self, status: Status, *, limit: int, cursor: str | None = None) -> RunPage:
        return self._listing.attention(status, limit=limit, cursor=cursor)

    def blocked_runs(self, *, not_under: str, limit: int) -> Sequence[str]:
        return self._listing.blocked(not_under=not_under, limit=limit)

    def start_task(self, run_id: str, task_id: str, *, worker: str, now: float, expires_at: float) -> TaskRow:
        return self._tasks.start(run_id, task_id, worker=worker, now=now, expires_at=expires_at)

    def beat_task(self, run_id: str, task_id: str, *, now: float, progress: str | None) -> TaskRow:
        return self._tasks.beat(run_id, task_id, now=now, progress=progress)

    def close_task(self, run_id: str, task_id: str, *, reason: str, expires_at: float) -> TaskRow:
        return self._tasks.close(run_id, task_id, reason=reason, expires_at=expires_at)

    def get_task(self, run_id: str, task_id: str) -> TaskRow | None:
        return self._tasks.get(run_id, task_id)

    def read_lane(self, name: str, *, tickets: int) -> LaneState | None:
        return self._lanes.read(name, tickets)

    def find_ticket(self, name: str, holder: str) -> Ticket | None:
        return self._lanes.find(name, holder)

    def write_lane(
        self, lane: Lane, *, expected_version: int | None, put: Sequence[Ticket] = (), remove: Sequence[Ticket] = ()
    ) -> bool:
        return self._lanes.write(lane, expected_version, put, remove)

    def due_lanes(self, *, before: float, limit: int) -> Sequence[str]:
        return self._lanes.due(before=before, limit=limit)

    def put_subscription(self, subscription: Subscription) -> None:
        self._subscriptions.put(subscription)

    def delete_subscription(self, event: str, run_id: str, location: str) -> None:
        self._subscriptions.delete(event, run_id, location)

    def subscriptions(self, event: str, *, cursor: str | None = None, limit: int = 100) -> SubscriptionPage:
        return self._subscriptions.page(event, cursor, limit)

    def put_buffered(self, event: BufferedEvent) -> None:
        self._subscriptions.keep(event)

    def close_buffered(self, event: BufferedEvent) -> None:
        self._subscriptions.close(event)

    def buffered(self, event: str, *, now: float) -> Sequence[BufferedEvent]:
        return self._subscriptions.kept(event, now)

    def take_event(
        self, event: str, event_id: str, run_id: str, location: str, *, at: float, expires_at: float
    ) -> Taken:
        return self._subscriptions.take(event, event_id, run_id, Taken(location, at), expires_at)

    def expired_runs(self, *, before: float, limit: int) -> Sequence[str]:
        return self._listing.expired(before=before, limit=limit)

    def postpone_deletion(self, run_id: str, *, epoch: int, until: float) -> None:
        self._lifecycle.postpone_deletion(run_id, epoch=epoch, until=until)

    def mark_for_deletion(self, run_id: str, *, epoch: int, now: float) -> bool:
        return self._lifecycle.mark_for_deletion(run_id, epoch=epoch, now=now)

    def empty_run(self, run_id: str) -> None:
        self._creation.empty(run_id)

    def delete_run(self, run_id: str) -> None:
        self._creation.delete(run_id)
