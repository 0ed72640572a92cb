"""The store on DynamoDB: each method is one request, or one a page or item where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, items, keys
from durable.adapters.dynamodb.keys import entry_key as _entry_key
from durable.adapters.dynamodb.listing import Listing
from durable.adapters.dynamodb.requests import Failed, Requests
from durable.adapters.sizes import check_entry, check_idempotency_key, check_message, check_payload
from durable.errors import Fenced, StoreUnavailable
from durable.ports import Acquired, Created, Exists, Held, KeyTaken, Missing, NotRunnable, Page, Settled, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from types_boto3_dynamodb.client import DynamoDBClient

    from durable.adapters.dynamodb.attributes import AttributeValue, Item
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run, Settlement, Status
    from durable.ports import Payload, RunPage

NEAR_SECONDS: Final = 3600.0
"""A due time further off than this gives way to the lease's end when a turn begins."""

SHARDS: Final = 4
"""Partitions of each index. May grow at any time, never shrink: rows stay where they were written."""

ACQUIRE_TRIES: Final = 4

_ONE: Final = {":one": a.number(1)}
_NO_LEASE: Final = dict.fromkeys(("lease_owner", "lease_until"))


class DynamoStore:
    """Implements `Store` on one table; `page_items` makes pages of a history smaller than DynamoDB's 1 MB."""

    def __init__(
        self, client: DynamoDBClient, table: str, *, shards: int = SHARDS, page_items: int | None = None
    ) -> None:
        self._requests = Requests(client, table)
        self._listing = Listing(self._requests, shards)
        self._shards = shards
        self._page: dict[str, int] = {} if page_items is None else {"Limit": page_items}

    def create(
        self, run: Run, *, input: str | None = None, idempotency_key: str | None = None
    ) -> Created | Exists | KeyTaken:
        check_payload("the input", run.input)
        absent = conditions.guarded(conditions.ABSENT)
        record = items.run_item(run, self._shards)
        if input is None and idempotency_key is None:
            failed = self._requests.put(record, **absent)
            return Created(run) if failed is None else _taken(run, failed, None)
        puts: list[dict[str, Any]] = [{"Item": record, **absent}]
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
            puts.append({"Item": items.idempotency_item(idempotency_key, run.id), **absent})
        if input is not None:
            check_payload("the input", input)
            puts.append({"Item": items.payload_item(run.id, keys.payload_key("input", 0), input)})
        reasons = self._requests.transact(puts)
        if reasons is None:
            return Created(run)
        return _taken(run, reasons[0], None if idempotency_key is None else reasons[1])

    def get(self, run_id: str) -> Run | None:
        item = self._requests.get(_key(run_id))
        return None if item is None else items.read_run(item)

    def get_payload(self, run_id: str, payload: Payload, *, epoch: int = 0) -> str | None:
        item = self._requests.get(_key(run_id, keys.payload_key(payload, epoch)))
        return None if item is None else items.read_payload(item)

    def acquire(
        self, run_id: str, *, owner: str, now: float, lease_until: float, code_version: str, due_is_near: bool
    ) -> Acquired | Held | NotRunnable | Missing:
        values = {
            ":now": a.number(now),
            ":far": a.number(now + NEAR_SECONDS),
            ":blocked": a.text("blocked"),
            ":code_version": a.text(code_version),
            ":lease_until_": a.number(lease_until),
        }
        near = due_is_near
        for _ in range(ACQUIRE_TRIES):
            answer = self._requests.update(_key(run_id), self._acquisition(run_id, owner, values, near=near))
            if not isinstance(answer, Failed):
                return Acquired(items.read_run(answer))
            if answer.old is None:
                return Missing()
            run = items.read_run(answer.old)
            refusal = _refusal(run, owner, now, code_version)
            if refusal is not None:
                return refusal
            near = run.due_at is None or run.due_at <= now + NEAR_SECONDS
        raise StoreUnavailable(f'run "{run_id}" changed between {ACQUIRE_TRIES} tries to acquire it')

    def announce(self, run_id: str, *, now: float) -> bool:
        arguments = conditions.update({}, conditions.HELD, {":now": a.number(now), **_ONE}, "#wakes = #wakes + :one")
        return not isinstance(self._requests.update(_key(run_id), arguments), Failed)

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        changes = {"fences": a.fences(fences)}
        arguments = conditions.update(changes, conditions.MINE, {":epoch": a.number(epoch)})
        if isinstance(self._requests.update(_key(run_id), arguments), Failed):
            raise Fenced(run_id, epoch)

    def load(self, run_id: str, *, cursor: str | None = None, mailbox_only: bool = False) -> Page:
        low, high = (keys.MESSAGES, keys.LOADED[1]) if mailbox_only else keys.LOADED
        start = {} if cursor is None else {"ExclusiveStartKey": _key(run_id, cursor)}
        reply = self._requests.query(
            KeyConditionExpression="pk = :pk AND sk BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":pk": a.text(keys.partition(run_id)),
                ":low": a.text(low),
                ":high": a.text(high),
            },
            ConsistentRead=True,
            **self._page,
            **start,
        )
        return _page(reply)

    def put_entry(self, run_id: str, entry: Entry) -> None:
        check_entry(entry)
        guard = conditions.guarded(conditions.NOT_NEWER, {":epoch": a.number(entry.epoch)})
        if self._requests.put(items.entry_item(run_id, entry), **guard) is not None:
            raise Fenced(run_id, entry.epoch)

    def put_payload(self, run_id: str, payload: Payload, text: str, *, epoch: int) -> None:
        check_payload(f"the {payload}", text)
        self._requests.put(items.payload_item(run_id, keys.payload_key(payload, epoch), text))

    def put_message(self, run_id: str, message: StoredMessage) -> bool:
        check_message(message)
        return self._requests.put(items.message_item(run_id, message), **conditions.guarded(conditions.ABSENT)) is None

    def delete_messages(self, run_id: str, message_ids: Sequence[str]) -> None:
        doomed = [_key(run_id, keys.message_key(message_id)) for message_id in dict.fromkeys(message_ids)]
        if len(doomed) == 1:
            self._requests.delete(doomed[0])
        else:
            self._requests.delete_all(doomed)

    def delete_entries(self, run_id: str, keys: Sequence[str], *, epoch: int) -> None:
        """One request an entry: a batch takes no conditions, and a transaction costs twice as much."""
        guard = conditions.guarded(conditions.NOT_NEWER, {":epoch": a.number(epoch)})
        for key in keys:
            self._requests.delete(_key(run_id, _entry_key(key)), **guard)

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        check_payload("the output", settlement.output)
        condition = conditions.UNSETTLED
        values = {":epoch": a.number(epoch)}
        if wakes is not None:
            condition = f"{condition} AND {conditions.UNSEEN}"
            values[":wakes"] = a.number(wakes)
        changes = items.settled_attributes(run_id, settlement, self._shards)
        changes |= {"clean_epoch": a.number(epoch), **_NO_LEASE}
        answer = self._requests.update(_key(run_id), conditions.update(changes, condition, values))
        if not isinstance(answer, Failed):
            return Settled()
        run = None if answer.old is None else items.read_run(answer.old)
        if run is None or run.epoch != epoch:
            raise Fenced(run_id, epoch)
        if run.lease_owner is not None:
            return WakesMoved(run.wakes)
        if run.clean_epoch != epoch:
            raise Fenced(run_id, epoch)
        return Settled()  # the reply to an earlier try was lost

    def release(self, run_id: str, *, epoch: int, now: float) -> None:
        changes = {**self._due(run_id, now), "released_epoch": a.number(epoch), **_NO_LEASE}
        self._requests.update(
            _key(run_id), conditions.update(changes, conditions.UNSETTLED, {":epoch": a.number(epoch)})
        )

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        changes: dict[str, AttributeValue | None] = {
            "status": a.text("cancelled"),
            "outcome": a.text("cancelled"),
            "reason": a.packed(reason),
            "updated_at": a.number(now),
            "finished_at": a.number(now),
            **_NO_LEASE,
            **dict.fromkeys(("due_at", "due_shard", "armed", "waiting_for", "attention")),
        }
        return self._change(run_id, conditions.update(changes, conditions.OPEN, _ONE, "#epoch = #epoch + :one"))

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        changes: dict[str, AttributeValue | None] = {
            "status": a.text("suspended"),
            "updated_at": a.number(now),
            **self._due(run_id, now),
            **dict.fromkeys(("reason", "attention")),
        }
        return self._change(run_id, conditions.update(changes, conditions.BLOCKED, {":blocked": a.text("blocked")}))

    def list_runs(
        self,
        workflow: str,
        *,
        outcome: Status | Literal["open"] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        return self._listing.runs(workflow, outcome=outcome, limit=limit, cursor=cursor)

    def due_runs(self, *, before: float, limit: int) -> Sequence[str]:
        return self._listing.due(before=before, limit=limit)

    def runs_needing_attention(self, status: Status, *, limit: int, cursor: str | None = None) -> RunPage:
        return self._listing.attention(status, limit=limit, cursor=cursor)

    def _acquisition(
        self, run_id: str, owner: str, values: Mapping[str, AttributeValue], *, near: bool
    ) -> dict[str, Any]:
        due = "if_not_exists(#due_at, :lease_until_)" if near else ":lease_until_"
        guess = conditions.DUE_IS_NEAR if near else conditions.DUE_IS_FAR
        return conditions.update(
            {
                "lease_owner": a.text(owner),
                "lease_until": values[":lease_until_"],
                "due_shard": a.text(str(keys.shard_of(run_id, self._shards))),
            },
            f"{conditions.RUNNABLE} AND {guess}",
            {**values, **_ONE},
            "#epoch = #epoch + :one",
            f"#due_at = {due}",
            "#started_at = if_not_exists(#started_at, :now)",
        ) | {"ReturnValues": "ALL_NEW"}

    def _due(self, run_id: str, now: float) -> dict[str, AttributeValue]:
        return {"due_at": a.number(now), "due_shard": a.text(str(keys.shard_of(run_id, self._shards)))}

    def _change(self, run_id: str, arguments: Mapping[str, Any]) -> Run | None:
        answer = self._requests.update(_key(run_id), {**arguments, "ReturnValues": "ALL_NEW"})
        item = answer.old if isinstance(answer, Failed) else answer
        return None if item is None else items.read_run(item)


def _key(run_id: str, sk: str = keys.META) -> Item:
    return {"pk": a.text(keys.partition(run_id)), "sk": a.text(sk)}


def _taken(run: Run, record: Failed | None, key: Failed | None) -> Created | Exists | KeyTaken:
    """What a refused creation means: the record's own writer succeeded before; a key outranks another run's id."""
    existing = None if record is None or record.old is None else items.read_run(record.old)
    if existing is not None and existing.writer == run.writer:
        return Created(existing)
    holder = None if key is None or key.old is None else items.read_idempotency(key.old)
    if holder is not None and (existing is None or holder != run.id):
        return KeyTaken(holder)
    if existing is None:
        raise StoreUnavailable(f'run "{run.id}": what refused its creation is gone')
    return Exists(existing)


def _refusal(run: Run, owner: str, now: float, code_version: str) -> Acquired | Held | NotRunnable | None:
    """Why a run could not be acquired; None if only the guess about its due time was wrong."""
    if run.ended:
        return NotRunnable(run)
    if run.held_at(now):
        return Acquired(run) if run.lease_owner == owner else Held(run)
    if run.status == "blocked" and run.code_version == code_version:
        return NotRunnable(run)
    return None


def _page(reply: Mapping[str, Any]) -> Page:
    entries: list[Entry] = []
    messages: list[StoredMessage] = []
    payloads: dict[Payload, str] = {}
    for item in reply["Items"]:
        sk: str = item["sk"]["S"]
        if sk.startswith(keys.ENTRIES):
            entries.append(items.read_entry(item))
        elif sk.startswith(keys.MESSAGES):
            messages.append(items.read_message(item))
        elif sk.startswith(keys.PAYLOADS):
            payloads[keys.payload_of(sk)] = items.read_payload(item)
    last = reply.get("LastEvaluatedKey")
    return Page(entries=entries, messages=messages, payloads=payloads, cursor=last["sk"]["S"] if last else None)
