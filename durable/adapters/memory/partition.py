"""One run's items in memory, in the order of their sort keys."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from durable.model.entry import Entry
from durable.model.message import StoredMessage

if TYPE_CHECKING:
    from durable.model.run import Run


@dataclass(slots=True)
class Partition:
    """What is stored under one run id, by sort key."""

    run: Run | None = None
    items: dict[str, Entry | StoredMessage | str] = field(default_factory=dict[str, Entry | StoredMessage | str])
    keys: list[str] = field(default_factory=list[str])

    def put(self, sk: str, item: Entry | StoredMessage | str) -> None:
        """Stores an item, over one that is there."""
        if sk not in self.items:
            insort(self.keys, sk)
        self.items[sk] = item

    def delete(self, sk: str) -> None:
        """Forgets an item, if there is one."""
        if sk in self.items:
            del self.items[sk]
            del self.keys[bisect_left(self.keys, sk)]
