"""Runs, entries and messages as items of the table, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import keys
from durable.adapters.dynamodb.attributes import AttributeValue, Item
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.run import ATTENTION, Run, Watcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from durable.model.run import Settlement, Status

_MARKS = "?@~!^"
"""What a mark starts with; locations have these characters escaped."""


@dataclass(frozen=True, slots=True)
class Field:
    """How a field of a value is kept in an attribute of the same name."""

    name: str
    write: Callable[[Any], AttributeValue]
    read: Callable[[AttributeValue], Any]
    default: Any = None
    """A value that is not stored; what is absent reads as it."""


def _fields(
    write: Callable[..., AttributeValue], read: Callable[..., Any], *names: str, default: Any = None
) -> Iterable[Field]:
    return (Field(name, write, read, default) for name in names)


_RUN: Final = (
    *_fields(a.text, a.read_text, "workflow", "version", "status", "writer", "parent", "lineage"),
    *_fields(a.text, a.read_text, "parent_location", "lane", "outbox"),
    *_fields(a.text, a.read_text, "lease_owner", "waits_digest", "code_version", "python"),
    *_fields(a.text, a.read_text, "cancel_requested", "ending", "successor"),
    *_fields(a.text, a.read_text, "input_digest", default=""),
    *_fields(a.packed, a.read_packed, "input", "output", "reason"),
    *_fields(a.number, a.read_int, "epoch", "born", "clean_epoch", "wakes"),
    *_fields(a.number, a.read_int, "undelivered", "late_results", "released_epoch", default=0),
    *_fields(a.number, a.read_float, "created_at", "started_at", "updated_at", "finished_at"),
    *_fields(a.number, a.read_float, "lease_until", "due_at", "armed", "deadline"),
    *_fields(a.flag, a.read_flag, "input_stored", "output_stored", "pruned", "watched", "deleting", default=False),
    *_fields(a.texts, a.read_texts, "tags", "waiting_for", "failed_at", default=()),
    *_fields(a.waits, a.read_waits, "waits", default=()),
    *_fields(a.fences, a.read_fences, "fences", "floors", default={}),
    *_fields(a.cuts, a.read_cuts, "cuts", default=()),
    *_fields(a.carries, a.read_carries, "carries"),
    *_fields(a.search_attributes, a.read_search_attributes, "attributes", default={}),
    *_fields(a.headers, a.read_headers, "headers", default={}),
    *_fields(a.error, a.read_error, "error"),
)


def _carried(entries: tuple[Entry, ...]) -> AttributeValue:
    return {"L": [{"M": {"key": a.text(entry.key), **_entry_attributes(entry)}} for entry in entries]}


def _read_carried(value: AttributeValue) -> tuple[Entry, ...]:
    return tuple(_entry(member["M"]["key"]["S"], member["M"]) for member in value["L"])


_FACTS: Final = {
    **dict.fromkeys(("kind", "n", "at", "fn", "branches", "failure", "started_at", "retry_at", "input_digest")),
    "attempts": 0,
}
"""Small fields of an entry and what is not stored of them, kept as one JSON text: parsing costs 2.5 µs an attribute."""

_ENTRY: Final = (
    *_fields(a.number, a.read_int, "epoch"),
    *_fields(a.packed, a.read_packed, "value"),
    *_fields(a.messages, a.read_messages, "messages", default=()),
    *_fields(_carried, _read_carried, "carried", default=()),
    *_fields(a.compensation, a.read_compensation, "compensation"),
    *_fields(a.error, a.read_error, "error"),
)

_MESSAGE: Final = (
    *_fields(a.text, a.read_text, "name"),
    *_fields(a.text, a.read_text, "sequence", default=""),
    *_fields(a.text, a.read_text, "kind", default="signal"),
    *_fields(a.number, a.read_float, "arrived_at"),
    *_fields(a.packed, a.read_packed, "body"),
)

_SETTLED: Final = tuple(
    field
    for field in _RUN
    if field.name
    in {
        "status", "started_at", "due_at", "armed", "waiting_for", "waits", "waits_digest", "reason", "code_version",
        "python", "output", "output_stored", "error", "undelivered", "late_results", "ending", "failed_at", "deadline", "outbox",
    }
)  # fmt: skip

_RUN_READERS: Final = {field.name: field.read for field in _RUN}
_ENTRY_READERS: Final = {field.name: field.read for field in _ENTRY}
_MESSAGE_READERS: Final = {field.name: field.read for field in _MESSAGE}


def key(run_id: str, sk: str = keys.META) -> Item:
    """The key of an item in a run's partition; of its record if nothing else is said."""
    return {"pk": a.text(keys.partition(run_id)), "sk": a.text(sk)}


def run_item(run: Run, shards: int) -> Item:
    """The run record of a new run, with the attributes of the indexes."""
    shard = keys.shard_of(run.id, shards)
    item = key(run.id) | _write(run, _RUN)
    item["listing"] = a.text(f"{run.workflow}#{shard}")
    item["created"] = a.text(keys.created_key(run.created_at, run.id))
    if run.due_at is not None:
        item["due_shard"] = _due_shard(run.id, shards, over=run.ended and run.outbox is None)
    if run.ended:
        item["outcome"] = a.text(run.status)
    if run.status in ATTENTION:
        item["attention"] = a.text(f"{run.status}#{shard}")
    return item


def read_run(item: Mapping[str, Any]) -> Run:
    """A run record."""
    return Run(id=keys.run_id_of(item["pk"]["S"]), **_read(item, _RUN_READERS))


def settled_attributes(run_id: str, settlement: Settlement, shards: int) -> dict[str, AttributeValue | None]:
    """What a settlement makes of the run record; None is to be removed."""
    shard, over = keys.shard_of(run_id, shards), settlement.terminal and settlement.outbox is None
    written = _write(settlement, _SETTLED)
    changed: dict[str, AttributeValue | None] = {field.name: written.get(field.name) for field in _SETTLED}
    status: Status = settlement.status
    changed |= {
        "updated_at": a.number(settlement.at),
        "finished_at": a.number(settlement.at) if settlement.terminal else None,
        "due_shard": None if settlement.due_at is None else _due_shard(run_id, shards, over=over),
        "outcome": a.text(status) if settlement.terminal else None,
        "attention": a.text(f"{status}#{shard}") if status in ATTENTION else None,
    }
    return changed


def _due_shard(run_id: str, shards: int, *, over: bool) -> AttributeValue:
    return a.text(keys.ended_shard(run_id, shards) if over else str(keys.shard_of(run_id, shards)))


def entry_item(run_id: str, entry: Entry) -> Item:
    """An entry of the history."""
    return key(run_id, keys.entry_key(entry.key)) | _entry_attributes(entry)


def read_entry(item: Mapping[str, Any]) -> Entry:
    """An entry of the history."""
    return _entry(item["sk"]["S"][len(keys.ENTRIES) :], item)


def kept_item(run_id: str, entry: Entry) -> Item:
    """An entry that is kept for a rollback. Its key says when it was recorded, so it tells its own in an attribute."""
    return key(run_id, keys.kept_key(entry.epoch, entry.n)) | {"key": a.text(entry.key)} | _entry_attributes(entry)


def read_kept(item: Mapping[str, Any]) -> Entry:
    """An entry that is kept for a rollback."""
    return _entry(item["key"]["S"], item)


def message_item(run_id: str, message: StoredMessage) -> Item:
    """A message of the mailbox."""
    return key(run_id, keys.message_key(message.id)) | _write(message, _MESSAGE)


def read_message(item: Mapping[str, Any]) -> StoredMessage:
    """A message of the mailbox."""
    return StoredMessage(id=item["sk"]["S"][len(keys.MESSAGES) :], **_read(item, _MESSAGE_READERS))


def payload_item(run_id: str, sk: str, payload: str) -> Item:
    """A payload that is stored apart."""
    return key(run_id, sk) | {"value": a.packed(payload)}


def read_payload(item: Mapping[str, Any]) -> str:
    """A payload that is stored apart."""
    return a.read_packed(item["value"])


def tombstone_key(run_id: str, message_id: str) -> Item:
    """The key of a tombstone, which is all there is to it."""
    return {"pk": a.text(keys.tombstones(run_id)), "sk": a.text(message_id)}


def reply_key(run_id: str, message_id: str) -> Item:
    """The key of the response to a message."""
    return {"pk": a.text(keys.replies(run_id)), "sk": a.text(message_id)}


def reply_item(run_id: str, message_id: str, reply: str, expires_at: float) -> Item:
    """The response to a message; DynamoDB deletes what has expired by whole seconds."""
    return reply_key(run_id, message_id) | {"value": a.packed(reply), "expires_at": a.number(ceil(expires_at))}


def watcher_item(run_id: str, watcher: Watcher) -> Item:
    """That another run waits for the end of this one."""
    sk = keys.watcher_key(watcher.run_id, watcher.location)
    return {"pk": a.text(keys.watchers(run_id)), "sk": a.text(sk), "run_id": a.text(watcher.run_id)}


def read_watcher(item: Mapping[str, Any]) -> Watcher:
    """A run that waits for the end of another."""
    run_id = item["run_id"]["S"]
    return Watcher(run_id, item["sk"]["S"].removeprefix(keys.watcher_key(run_id, "")))


def idempotency_item(key: str, run_id: str) -> Item:
    """The mark that an idempotency key is spent."""
    return {"pk": a.text(keys.idempotency_partition(key)), "sk": a.text(keys.IDEMPOTENCY), "run_id": a.text(run_id)}


def read_idempotency(item: Mapping[str, Any]) -> str:
    """The run that an idempotency key has started."""
    return item["run_id"]["S"]


def _entry(key: str, item: Mapping[str, Any]) -> Entry:
    split = min((at for at in map(key.find, _MARKS) if at >= 0), default=len(key))
    facts = json.loads(item["facts"]["S"])
    return Entry(location=key[:split], mark=key[split:], **facts, **_read(item, _ENTRY_READERS))


def _entry_attributes(entry: Entry) -> Item:
    facts = {name: fact for name, default in _FACTS.items() if (fact := getattr(entry, name)) != default}
    return {"facts": a.text(json.dumps(facts, separators=(",", ":"), ensure_ascii=False)), **_write(entry, _ENTRY)}


def _write(value: Any, fields: Iterable[Field]) -> Item:
    item: Item = {}
    for field in fields:
        member = getattr(value, field.name)
        if member is not None and member != field.default:
            item[field.name] = field.write(member)
    return item


def _read(item: Mapping[str, Any], readers: Mapping[str, Callable[[AttributeValue], Any]]) -> dict[str, Any]:
    return {name: readers[name](value) for name, value in item.items() if name in readers}
