"""Transactions of workflows: the author's items and the record of the operation are written together or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable import failures
from durable.errors import TransactionRefused

if TYPE_CHECKING:
    from durable.engine.writer import EntryWriter
    from durable.model.entry import Entry
    from durable.ops.transact import TransactOperation


def transact(writer: EntryWriter, operation: TransactOperation) -> Entry:
    """The entry of the operation, which is written: with its items, or with the refusal in their place."""
    entry, refused = writer.write_with(operation, operation.items, attempts=1)
    if refused is None:
        return entry
    error = failures.record(TransactionRefused(refused.item, refused.reason))
    return writer.write(operation, error=error, failure="critical", attempts=1)
