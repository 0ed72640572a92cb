"""A transaction: the author's own tables are written together with the record that they were.

| state   | history at the location | what happens                                                               |
|---------|-------------------------|----------------------------------------------------------------------------|
| new     | nothing                 | the engine writes the items, the record and a check of the run, or nothing |
| written | an entry without value  | returns None; it is never written again                                    |
| refused | an error, `critical`    | StepFailed that is also a TransactionRefused                               |
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from durable import failures
from durable.ops.operation import Host, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.entry import Entry
    from durable.model.transaction import TransactItem


class TransactOperation(Operation):
    """`await ctx.transact("reserve", [{"Put": {...}}])`."""

    __slots__ = ("items", "name")
    kind = "transact"

    def __init__(self, host: Host, name: str, items: Sequence[TransactItem]) -> None:
        self.name = name
        self.items = items
        super().__init__(host, name, name)

    def before_waiting(self) -> None:
        self.items = deepcopy(self.items)  # other code may change them until they are written

    def decode(self, entry: Entry) -> None:
        if entry.error is not None:
            raise failures.step_failed(self.name, entry.attempts, entry.error, entry.failure or "critical")
