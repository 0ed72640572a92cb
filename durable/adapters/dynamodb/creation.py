"""How runs come into the table, and how they leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, items, keys
from durable.adapters.dynamodb.requests import BATCH
from durable.adapters.sizes import check_idempotency_key, check_payload
from durable.errors import StoreUnavailable
from durable.ports import Created, Exists, KeyTaken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from durable.adapters.dynamodb.attributes import Item
    from durable.adapters.dynamodb.requests import Failed, Requests
    from durable.model.run import Run


class Creation:
    """Creates and deletes runs."""

    def __init__(self, requests: Requests, shards: int) -> None:
        self._requests = requests
        self._shards = shards

    def create(self, run: Run, input: str | None, idempotency_key: str | None) -> Created | Exists | KeyTaken:
        """One request, which is a transaction where there is more than the record to write."""
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
        reasons = self._requests.transact(*({"Put": put} for put in puts))
        if reasons is None:
            return Created(run)
        return _taken(run, reasons[0], None if idempotency_key is None else reasons[1])

    def empty(self, run_id: str) -> None:
        """Two requests, and one for each 25 items."""
        self._sweep(keys.partition(run_id), keys.tasks(run_id))

    def delete(self, run_id: str) -> None:
        """Five requests to find items and one to delete each 25 of them; the record goes last, by its own request.

        So a deletion that is cut short is found again and completed. Tombstones and watchers belong to a
        lineage: they go with its last run.
        """
        record = self._requests.get(items.key(run_id))
        if record is None:
            return
        run = items.read_run(record)
        shared = (keys.tombstones(run.lineage or run_id), keys.watchers(run.lineage or run_id))
        own = (keys.partition(run_id), keys.replies(run_id), keys.tasks(run_id))
        self._sweep(*own, *(shared if run.successor is None else ()))
        same = conditions.guarded(conditions.SAME_LIFE, {":born": a.number(run.born)})
        self._requests.delete(items.key(run_id), **same)

    def _sweep(self, *partitions: str) -> None:
        """Deletes everything in the partitions, a run record excepted."""
        doomed: list[Item] = []
        for item in self._items_of(partitions):
            doomed.append(item)
            if len(doomed) == BATCH:
                self._requests.delete_all(doomed)
                doomed = []
        self._requests.delete_all(doomed)

    def _items_of(self, partitions: Iterable[str]) -> Iterator[Item]:
        for partition in partitions:
            for item in self._requests.pages(
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": a.text(partition)},
                ProjectionExpression="pk, sk",
                ConsistentRead=True,
            ):
                if item["sk"]["S"] != keys.META or not keys.is_run(partition):
                    yield {"pk": item["pk"], "sk": item["sk"]}


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
