"""Tables of the author's own, in memory, for transactions of workflows: with the conditions and updates of DynamoDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from durable.adapters.memory.expressions import ExpressionFault, holds, updated
from durable.model.answers import Refused

if TYPE_CHECKING:
    from durable.model.transaction import TransactItem

Row = dict[str, Any]
Key = tuple[Any, ...]


class MemoryTable:
    """One table, with rows as plain dicts."""

    def __init__(self, name: str, key: Sequence[str]) -> None:
        self.name = name
        self.key = tuple(key)
        self._rows: dict[Key, Row] = {}

    def put(self, row: Mapping[str, Any]) -> None:
        """Writes a row, over one with the same key."""
        self._rows[self._key_of(row)] = deepcopy(dict(row))

    def get(self, **key: Any) -> Row | None:
        """The row with this key, or None."""
        row = self._rows.get(self._key_of(key))
        return None if row is None else deepcopy(row)

    @property
    def rows(self) -> list[Row]:
        """Every row, in the order of their first writes."""
        return [deepcopy(row) for row in self._rows.values()]

    def _key_of(self, row: Mapping[str, Any]) -> Key:
        try:
            return tuple(row[name] for name in self.key)
        except KeyError as missing:
            message = f'the key of table "{self.name}" is {", ".join(self.key)}, and {missing} is not given'
            raise ExpressionFault(message) from None

    def prepared(self, action: str, arguments: Mapping[str, Any]) -> tuple[Key, Row | None]:
        """The key and the row after the action, None where it is deleted; raises what stands against it."""
        key = self._key_of(arguments["Item"] if action == "Put" else arguments["Key"])
        row = self._rows.get(key)
        condition = arguments.get("ConditionExpression")
        if condition is not None and not holds(condition, row or {}, arguments):
            raise ExpressionFault("ConditionalCheckFailed")
        match action:
            case "Put":
                return key, deepcopy(dict(arguments["Item"]))
            case "Update":
                fresh = dict(zip(self.key, key, strict=True))
                return key, updated(arguments["UpdateExpression"], row or fresh, arguments)
            case "Delete":
                return key, None
            case _:
                return key, row

    def write(self, key: Key, row: Row | None) -> None:
        """Writes or deletes a row."""
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row


class MemoryTables:
    """The author's tables by name; a test declares each before its use."""

    def __init__(self) -> None:
        self._tables: dict[str, MemoryTable] = {}

    def declare(self, name: str, key: Sequence[str]) -> MemoryTable:
        """The table of this name; the first call makes it, with its key."""
        return self._tables.setdefault(name, MemoryTable(name, key or ("pk",)))

    def write_all(self, items: Sequence[TransactItem]) -> Refused | None:
        """Writes all items or none; None once they are written."""
        prepared: dict[tuple[str, Key], Row | None] = {}
        for index, item in enumerate(items):
            ((action, arguments),) = item.items()
            table = self._tables.get(arguments["TableName"])
            if table is None:
                return Refused(
                    None, f'there is no table "{arguments["TableName"]}": declare it with env.table(name, key)'
                )
            try:
                key, row = table.prepared(action, arguments)
            except ExpressionFault as fault:
                return Refused(index, str(fault))
            if (table.name, key) in prepared:
                return Refused(None, "Transaction request cannot include multiple operations on one item")
            prepared[table.name, key] = row
        for (name, key), row in prepared.items():
            self._tables[name].write(key, row)
        return None
