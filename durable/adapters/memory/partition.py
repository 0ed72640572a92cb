"""Everything that is stored in memory: one run's items in the order of their sort keys, and the table of all runs."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from durable.errors import Fenced
from durable.model.answers import Chunk
from durable.model.entry import Entry
from durable.model.message import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from durable.model.lane import Lane, Ticket
    from durable.model.run import Run, Watcher
    from durable.model.subscription import BufferedEvent, Subscription, Taken
    from durable.model.task import TaskRow


@dataclass(frozen=True, slots=True)
class Published:
    """A value that a run has published, and the epoch that did."""

    text: str
    epoch: int


StoredItem: TypeAlias = Entry | StoredMessage | Published | Chunk | str


@dataclass(slots=True)
class Partition:
    """What is stored under one run id, by sort key."""

    run: Run | None = None
    items: dict[str, StoredItem] = field(default_factory=dict[str, StoredItem])
    keys: list[str] = field(default_factory=list[str])

    def put(self, sk: str, item: StoredItem) -> None:
        """Stores an item, over one that is there."""
        if sk not in self.items:
            insort(self.keys, sk)
        self.items[sk] = item

    def delete(self, sk: str) -> None:
        """Forgets an item, if there is one."""
        if sk in self.items:
            del self.items[sk]
            del self.keys[bisect_left(self.keys, sk)]

    def starting(self, prefix: str) -> Iterator[tuple[str, StoredItem]]:
        """The items whose keys start so, in order, with the rest of their keys."""
        for at in range(bisect_left(self.keys, prefix), len(self.keys)):
            sk = self.keys[at]
            if not sk.startswith(prefix):
                return
            yield sk[len(prefix) :], self.items[sk]


class Table:
    """All runs, and what is kept beside them. Whoever looks at several things at once holds the lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.partitions: dict[str, Partition] = {}
        self.idempotency: dict[str, str] = {}
        self.tombstones: dict[str, set[str]] = {}
        self.replies: dict[str, dict[str, str]] = {}
        self.tasks: dict[str, dict[str, TaskRow]] = {}
        self.lanes: dict[str, Lane] = {}
        self.tickets: dict[str, dict[str, Ticket]] = {}
        self.watchers: dict[str, dict[Watcher, None]] = {}
        self.subscriptions: dict[str, dict[str, Subscription]] = {}
        self.buffered: dict[str, dict[str, BufferedEvent | None]] = {}
        self.taken: dict[tuple[str, str], dict[str, Taken]] = {}

    def partition(self, run_id: str) -> Partition:
        """The partition of a run, which may be empty."""
        return self.partitions.setdefault(run_id, Partition())

    def owned(self, run_id: str, epoch: int) -> Run:
        """The record of a run that nobody has acquired since this epoch; raises Fenced otherwise."""
        run = self.partition(run_id).run
        if run is None or run.epoch != epoch:
            raise Fenced(run_id, epoch)
        return run

    def update(self, run: Run) -> Run:
        """Writes a run record."""
        self.partition(run.id).run = run
        return run

    def everything(self) -> list[str]:
        """All that is stored, one thing a line."""
        with self.lock:
            lines: list[str] = []
            for name, part in vars(self).items():
                if isinstance(part, dict):
                    rows = cast("dict[Any, Any]", part).items()
                    lines += [f"{name} {key!r}: {row!r}" for key, row in rows if row and row != Partition()]
            return lines

    def runs(self) -> list[Run]:
        """Every run record."""
        with self.lock:
            return [partition.run for partition in self.partitions.values() if partition.run is not None]
