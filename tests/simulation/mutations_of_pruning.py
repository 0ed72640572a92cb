"""Ways to break one rule of pruning each: what a loop has left behind goes, and nothing that still matters with it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from durable.adapters.memory import MemoryStore
from durable.engine import fencing, lease, pruning
from durable.engine.pruning import Pruner
from durable.model.entry import Entry
from tests.simulation.mutations import Mutation


class FloorlessStore(MemoryStore):
    """Does not note what a turn prunes of its own items."""

    def record_floor(self, run_id: str, *, epoch: int, n: int) -> None:
        del n
        self.mark_pruned(run_id, epoch=epoch)


class UnmarkedStore(MemoryStore):
    """Does not note that entries go which have consumed messages."""

    def record_floor(self, run_id: str, *, epoch: int, n: int) -> None:
        super().record_floor(run_id, epoch=epoch, n=n)
        self._forget(run_id)

    def mark_pruned(self, run_id: str, *, epoch: int) -> None:
        super().mark_pruned(run_id, epoch=epoch)
        self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        run = self.get(run_id)
        assert run is not None
        self._update(replace(run, pruned=False))


class FloorOfAnyoneStore(MemoryStore):
    """Lets a turn prune its own items that has lost its lease."""

    def record_floor(self, run_id: str, *, epoch: int, n: int) -> None:
        run = self.get(run_id)
        assert run is not None
        self._update(replace(run, floors={epoch: n}, pruned=True))


class TombstonelessStore(MemoryStore):
    """Does not remember which messages were consumed by entries that are gone."""

    def bury(self, run_id: str, message_ids: Sequence[str]) -> None:
        pass


def delete_first(self: Pruner, obsolete: Sequence[Entry], *, delete: Any = Pruner._delete, **facts: Any) -> None:
    """Deletes entries before what must outlive them is kept elsewhere."""
    keys = [entry.key for entry in obsolete]
    self._ports.store.delete_entries(self._run.id, keys, epoch=self._run.epoch)
    delete(self, obsolete, **facts)


def with_all_that_it_carries(entries: Sequence[Entry], left: Sequence[Entry]) -> list[Entry]:
    """Deletes progress that carries the result of another operation."""
    kept = {id(entry) for entry in left}
    return [entry for entry in entries if id(entry) not in kept]


def below_the_progress(self: Pruner, entry: Entry, *, after: Any = Pruner.after) -> None:
    """Notes a floor that leaves the progress itself above it, behind a gap."""
    before = replace(entry, n=max(0, entry.n - 2))
    after(self, before)


MUTATIONS_OF_PRUNING = [
    Mutation("no_floor", "a turn deletes items of its own only under a floor", "looping", store=FloorlessStore),
    Mutation(
        "low_floor", "the floor is the progress that makes items obsolete", "looping",
        patches=[(Pruner, "after", below_the_progress)],
    ),
    Mutation(
        "floor_of_anyone", "only the owner records a floor", "looping", rarely_seen=True, store=FloorOfAnyoneStore
    ),
    Mutation(
        "no_floor_in_the_fence", "a lost turn's gap-free prefix starts at its floor", "looping",
        patches=[(fencing, "gap_free_prefix", lambda numbers, floor=0, count=fencing.gap_free_prefix: count(numbers))],
    ),
    Mutation(
        "delete_before_bury", "tombstones come before the entry that they stand for goes", "looping",
        patches=[(Pruner, "_delete", delete_first)],
    ),
    Mutation("no_tombstones", "what a pruned iteration has consumed stays consumed", "looping", store=TombstonelessStore),
    Mutation("unmarked", "the record says that tombstones must be looked up", "looping", store=UnmarkedStore),
    Mutation(
        "tombstones_ignored", "a message with a tombstone is consumed", "looping",
        patches=[(lease, "_buried", lambda *_: frozenset[str]())],
    ),
    Mutation(
        "carried_results_deleted", "progress that carries another result stays as long as that", "looping",
        patches=[(pruning, "_missing", with_all_that_it_carries)],
    ),
    Mutation(
        "no_pruning", "a loop's history is bounded", "looping",
        patches=[(pruning, "seal", lambda entries: ({}, frozenset[str](), entries))],
    ),
    Mutation(
        "fences_forgotten_early", "a fence stays as long as its owner may write", "looping",
        patches=[(fencing, "LONGEST_INVOCATION", 0.0)],
    ),
]  # fmt: skip
