"""Histories on DynamoDB: what turns load and write, and what was taken back or pruned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, items, keys
from durable.adapters.dynamodb.requests import TRANSACTION, Failed
from durable.adapters.sizes import check_entry, check_payload
from durable.errors import Fenced
from durable.model.attributes import check_attributes
from durable.ports import Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.dynamodb.attributes import AttributeValue, Item
    from durable.adapters.dynamodb.requests import Requests
    from durable.model.attributes import Attributes
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Cut
    from durable.ports import Payload

GRAVES: Final = TRANSACTION - 1
"""Tombstones that one transaction removes, beside the run record."""


class History:
    """Reads and writes the items of runs, and what their records say about them."""

    def __init__(self, requests: Requests, page_items: int | None) -> None:
        self._requests = requests
        self._page: dict[str, int] = {} if page_items is None else {"Limit": page_items}

    def load(self, run_id: str, cursor: str | None, *, mailbox_only: bool) -> Page:
        """One request."""
        low, high = (keys.MESSAGES, keys.LOADED[1]) if mailbox_only else keys.LOADED
        start = {} if cursor is None else {"ExclusiveStartKey": items.key(run_id, cursor)}
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
        """One request."""
        check_entry(entry)
        guard = conditions.guarded(conditions.NOT_NEWER, {":epoch": a.number(entry.epoch)})
        if self._requests.put(items.entry_item(run_id, entry), **guard) is not None:
            raise Fenced(run_id, entry.epoch)

    def keep_compensations(self, run_id: str, entries: Sequence[Entry]) -> None:
        """One request for each 25 entries."""
        for entry in entries:
            check_entry(entry)
        self._requests.put_all([items.kept_item(run_id, entry) for entry in entries])

    def delete_entries(self, run_id: str, entry_keys: Sequence[str], *, epoch: int) -> None:
        """One request an entry: a batch takes no conditions, and a transaction costs twice as much."""
        guard = conditions.guarded(conditions.NOT_NEWER, {":epoch": a.number(epoch)})
        for key in entry_keys:
            self._requests.delete(items.key(run_id, keys.entry_key(key)), **guard)

    def get_payload(self, run_id: str, payload: Payload, *, epoch: int) -> str | None:
        """One request."""
        item = self._requests.get(items.key(run_id, keys.payload_key(payload, epoch)))
        return None if item is None else items.read_payload(item)

    def put_payload(self, run_id: str, payload: Payload, text: str, *, epoch: int) -> None:
        """One request."""
        check_payload(f"the {payload}", text)
        self._requests.put(items.payload_item(run_id, keys.payload_key(payload, epoch), text))

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        """One request."""
        self._record(run_id, epoch, {"fences": a.fences(fences)})

    def record_floor(self, run_id: str, *, epoch: int, n: int) -> None:
        """One request."""
        self._record(run_id, epoch, {"floors": a.fences({epoch: n}), "pruned": a.flag(True)})

    def mark_pruned(self, run_id: str, *, epoch: int) -> None:
        """One request."""
        self._record(run_id, epoch, {"pruned": a.flag(True)})

    def annotate(self, run_id: str, *, epoch: int, tags: tuple[str, ...] | None, attributes: Attributes | None) -> None:
        """One request; none if there is nothing to replace."""
        changes: dict[str, AttributeValue | None] = {}
        if tags is not None:
            changes["tags"] = a.texts(tags) if tags else None
        if attributes is not None:
            checked = check_attributes(attributes)
            changes["attributes"] = a.search_attributes(checked) if checked else None
        if changes:
            self._record(run_id, epoch, changes)

    def clear_carries(self, run_id: str, *, epoch: int) -> None:
        """One request."""
        self._record(run_id, epoch, {"carries": None})

    def record_cut(self, run_id: str, *, epoch: int, cut: Cut, unburied: Sequence[str]) -> None:
        """One request; with tombstones a read and a transaction, and one more transaction for each 99 of them."""
        values = {":epoch": a.number(epoch), ":cut": a.cut(cut), ":cuts": a.cuts((cut,)), ":none": a.cuts(())}
        added = "#cuts = list_append(if_not_exists(#cuts, :none), :cuts)"
        cutting = conditions.update({}, conditions.UNCUT, values, added)
        record = items.key(run_id)
        if not unburied:
            answer = self._requests.update(record, cutting)
            if isinstance(answer, Failed):
                _check_owner(run_id, epoch, answer)
            return
        graves = self._graves(run_id, epoch, unburied)
        mine = conditions.guarded(conditions.MINE, {":epoch": a.number(epoch)})
        for start in range(0, len(graves), GRAVES):
            last = start + GRAVES >= len(graves)
            reasons = self._requests.transact(
                {"Update": {"Key": record, **cutting}} if last else {"ConditionCheck": {"Key": record, **mine}},
                *({"Delete": {"Key": grave}} for grave in graves[start : start + GRAVES]),
            )
            if reasons is not None and reasons[0] is not None:
                _check_owner(run_id, epoch, reasons[0])

    def _graves(self, run_id: str, epoch: int, message_ids: Sequence[str]) -> list[Item]:
        record = self._requests.get(items.key(run_id))
        if record is None:
            raise Fenced(run_id, epoch)
        lineage = items.read_run(record).lineage or run_id
        return [items.tombstone_key(lineage, message_id) for message_id in dict.fromkeys(message_ids)]

    def _record(self, run_id: str, epoch: int, changes: Mapping[str, AttributeValue | None]) -> None:
        arguments = conditions.update(changes, conditions.MINE, {":epoch": a.number(epoch)})
        if isinstance(self._requests.update(items.key(run_id), arguments), Failed):
            raise Fenced(run_id, epoch)


def _check_owner(run_id: str, epoch: int, refused: Failed) -> None:
    """Raises Fenced unless an earlier try, whose reply was lost, is why the record refused."""
    if refused.old is None or items.read_run(refused.old).epoch != epoch:
        raise Fenced(run_id, epoch)


def _page(reply: Mapping[str, Any]) -> Page:
    entries: list[Entry] = []
    kept: list[Entry] = []
    messages: list[StoredMessage] = []
    payloads: dict[Payload, str] = {}
    for item in reply["Items"]:
        sk: str = item["sk"]["S"]
        if sk.startswith(keys.ENTRIES):
            entries.append(items.read_entry(item))
        elif sk.startswith(keys.KEPT):
            kept.append(items.read_kept(item))
        elif sk.startswith(keys.MESSAGES):
            messages.append(items.read_message(item))
        elif sk.startswith(keys.PAYLOADS):
            payloads[keys.payload_of(sk)] = items.read_payload(item)
    last = reply.get("LastEvaluatedKey")
    cursor = last["sk"]["S"] if last else None
    return Page(entries=entries, kept=kept, messages=messages, payloads=payloads, cursor=cursor)
