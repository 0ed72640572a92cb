"""Counts what code asks of AWS: requests, and the write and read units that DynamoDB would charge, indexes included."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from durable.adapters.dynamodb.capacity import item_bytes, read_units, write_units

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    Item = Mapping[str, Any]

_TRANSACTION: Final = 2
"""Transactional writes cost twice as much (DynamoDB developer guide)."""


@dataclass(slots=True)
class Counts:
    """What was asked since the counter was last read."""

    requests: Counter[str] = field(default_factory=Counter[str])
    """By service and operation, attempts of the SDK counted one by one: `dynamodb.PutItem`."""
    write_units: int = 0
    index_units: int = 0
    """The part of `write_units` that goes to indexes."""
    read_units: float = 0.0

    @property
    def total(self) -> int:
        """All requests."""
        return self.requests.total()

    def add(self, other: Counts) -> None:
        """Adds what was counted at another time."""
        self.requests.update(other.requests)
        self.write_units += other.write_units
        self.index_units += other.index_units
        self.read_units += other.read_units


@dataclass(frozen=True, slots=True)
class _Index:
    keys: tuple[str, ...]
    attributes: frozenset[str]

    def row(self, item: Item | None) -> dict[str, Any] | None:
        """What the index holds of an item; None if the item is not in it."""
        if item is None or any(key not in item for key in self.keys):
            return None
        return {name: value for name, value in item.items() if name in self.attributes}

    def units(self, old: Item | None, new: Item | None) -> int:
        """A row that comes, goes or changes is one write; one whose key changes is a delete and a write."""
        before, after = self.row(old), self.row(new)
        if before == after:
            return 0
        rows = [row for row in (before, after) if row is not None]
        if before and after and all(before[key] == after[key] for key in self.keys):
            return write_units(*map(item_bytes, rows))
        return sum(write_units(item_bytes(row)) for row in rows)


class RequestCounter:
    """Listens to clients by their event hooks; looks at items before and after each write to tell what it costs.

    Meant for an emulator: the looks are requests too (uncounted), and writes must not run side by side.
    """

    def __init__(self, dynamodb: Any, table: str, *others: Any) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._paused = False
        self._counts = Counts()
        self._indexes = [_index(index) for index in self._describe()["GlobalSecondaryIndexes"]]
        dynamodb.meta.events.register("before-parameter-build.dynamodb", self._before)
        dynamodb.meta.events.register("after-call.dynamodb", self._after)
        for client in (dynamodb, *others):
            client.meta.events.register("request-created", self._count)

    def take(self) -> Counts:
        """What was counted since the last call."""
        counts, self._counts = self._counts, Counts()
        return counts

    @contextmanager
    def paused(self) -> Generator[None]:
        """Counts nothing of what is asked inside the block."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def _describe(self) -> Any:
        return self._dynamodb.describe_table(TableName=self._table)["Table"]

    def _count(self, event_name: str, **_: Any) -> None:
        if not self._paused:
            self._counts.requests[event_name.removeprefix("request-created.")] += 1

    def _before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if not self._paused:
            keys = list(_written_keys(model.name, params, self._table))
            context["counting"] = (params, [(key, self._look(key)) for key in keys])

    def _after(self, parsed: Any, model: Any, context: dict[str, Any], **_: Any) -> None:
        if self._paused or "counting" not in context:
            return
        params, written = context.pop("counting")
        factor = _TRANSACTION if model.name == "TransactWriteItems" else 1
        for key, old in written:
            self._charge(old, self._look(key), factor)
        self._counts.read_units += _read(model.name, params, parsed)

    def _charge(self, old: Item | None, new: Item | None, factor: int) -> None:
        sizes = [item_bytes(item) for item in (old, new) if item is not None]
        index_units = sum(index.units(old, new) for index in self._indexes)
        self._counts.index_units += index_units
        self._counts.write_units += factor * write_units(*sizes) + index_units

    def _look(self, key: Item) -> Item | None:
        with self.paused():
            return self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")


def _index(description: Mapping[str, Any]) -> _Index:
    keys = tuple(element["AttributeName"] for element in description["KeySchema"])
    projected = description["Projection"].get("NonKeyAttributes", ())
    return _Index(keys, frozenset({"pk", "sk", *keys, *projected}))


def _written_keys(operation: str, params: Mapping[str, Any], table: str) -> Iterable[Item]:
    match operation:
        case "PutItem":
            yield _key(params["Item"])
        case "UpdateItem" | "DeleteItem":
            yield params["Key"]
        case "TransactWriteItems":
            for action in params["TransactItems"]:
                ((_, write),) = action.items()
                yield write["Key"] if "Key" in write else _key(write["Item"])
        case "BatchWriteItem":
            for write in params["RequestItems"].get(table, ()):
                ((_, request),) = write.items()
                yield request["Key"] if "Key" in request else _key(request["Item"])
        case _:
            return


def _read(operation: str, params: Mapping[str, Any], parsed: Mapping[str, Any]) -> float:
    match operation:
        case "GetItem":
            found = [parsed["Item"]] if "Item" in parsed else []
        case "Query" | "Scan":
            found = parsed.get("Items", [])
        case "BatchGetItem":
            return sum(
                _read_each(request, parsed["Responses"][table]) for table, request in params["RequestItems"].items()
            )
        case _:
            return 0.0
    return read_units(sum(map(item_bytes, found)), consistent=bool(params.get("ConsistentRead")))


def _read_each(request: Mapping[str, Any], found: Iterable[Item]) -> float:
    """A batch reads each item for itself, and one that is missing costs as much as a small one."""
    consistent = bool(request.get("ConsistentRead"))
    sizes = [item_bytes(item) for item in found]
    missing = len(request["Keys"]) - len(sizes)
    return sum(read_units(max(1, size), consistent=consistent) for size in [*sizes, *[1] * missing])


def _key(item: Item) -> Item:
    return {"pk": item["pk"], "sk": item["sk"]}
