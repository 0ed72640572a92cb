"""Ways to break one rule of the protocol each: the simulation must notice every one of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from durable.adapters.dynamodb import keys as layout
from durable.adapters.memory import MemoryStore
from durable.engine import fencing, settling
from durable.engine.cache import HistoryCache, Kept
from durable.engine.lease import Loaded
from durable.engine.session import Session
from durable.engine.writer import EntryWriter
from durable.errors import StoreUnavailable
from durable.model.entry import Entry
from durable.model.run import Run, Settlement
from durable.ports import Acquired, Held, Missing, NotRunnable, Ports, Settled, WakesMoved


@dataclass(frozen=True)
class Mutation:
    """One broken rule: another store, other methods of the engine, or both."""

    name: str
    rule: str
    workload: str = "chain"
    rarely_seen: bool = False
    """Whether it takes hundreds of seeds, so that only the long runs look for it."""
    store: type[MemoryStore] = MemoryStore
    patches: Sequence[tuple[Any, str, Any]] = field(default=())

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        for target, name, value in self.patches:
            patch.setattr(target, name, value)


class OverwritingStore(MemoryStore):
    """Lets an older epoch write over a newer one's entry."""

    def put_entry(self, run_id: str, entry: Entry) -> None:
        with self._lock:
            self._partition(run_id).put(layout.entry_key(entry.key), entry)


class EagerStore(MemoryStore):
    """Deletes a message in the moment in which an entry consumes it."""

    def put_entry(self, run_id: str, entry: Entry) -> None:
        super().put_entry(run_id, entry)
        self.delete_messages(run_id, [message.id for message in entry.messages])


class DeafStore(MemoryStore):
    """Settles whatever the count of wakes is."""

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        del wakes
        return super().settle(run_id, epoch=epoch, wakes=None, settlement=settlement)


class SilentStore(MemoryStore):
    """Says that the holder will look again, and does not tell it."""

    def announce(self, run_id: str, *, now: float) -> bool:
        run = self.get(run_id)
        return run is not None and run.held_at(now)


class OpenStore(MemoryStore):
    """Lets a turn settle that has lost its lease."""

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        run = self.get(run_id)
        assert run is not None
        if run.epoch != epoch:
            self._update(replace(run, lease_owner=run.lease_owner or "another"))
        return super().settle(run_id, epoch=run.epoch, wakes=wakes, settlement=settlement)


class HintlessStore(MemoryStore):
    """Does not make a run due when a turn of it begins."""

    def acquire(self, run_id: str, **facts: Any) -> Acquired | Held | NotRunnable | Missing:
        before = self.get(run_id)
        answer = super().acquire(run_id, **facts)
        if isinstance(answer, Acquired) and before is not None:
            self._update(replace(answer.run, due_at=before.due_at))
        return answer


class SameEpochStore(MemoryStore):
    """Takes a run over without a new epoch."""

    def acquire(self, run_id: str, **facts: Any) -> Acquired | Held | NotRunnable | Missing:
        before = self.get(run_id)
        answer = super().acquire(run_id, **facts)
        if isinstance(answer, Acquired) and before is not None and before.lease_until is not None:
            return Acquired(self._update(replace(answer.run, epoch=before.epoch)))
        return answer


class FencesForAllStore(MemoryStore):
    """Lets a turn record fences that has lost its lease."""

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        del epoch
        run = self.get(run_id)
        assert run is not None
        super().record_fences(run_id, epoch=run.epoch, fences=fences)


def fence_recomputed(ports: Ports, run: Run, entries: Sequence[Entry]) -> Run:
    """Forgets that a fence once recorded is final."""
    fences = {
        epoch: fencing.gap_free_prefix({entry.n for entry in entries if entry.epoch == epoch})
        for epoch in range(run.clean_epoch + 1, run.epoch)
    }
    ports.store.record_fences(run.id, epoch=run.epoch, fences=fences)
    return replace(run, fences=fences)


def arm_never(ports: Ports, run: Run, due_at: float | None) -> float | None:
    """Sets no timer."""
    del ports
    return run.armed if due_at is None else due_at


def go_on_unrecorded(write: Callable[..., Entry]) -> Callable[..., Entry]:
    """Hands a result on whose write failed."""

    def careless(self: EntryWriter, operation: Any, *, mark: str = "", **facts: Any) -> Entry:
        try:
            return write(self, operation, mark=mark, **facts)
        except StoreUnavailable:
            self._n += 1
            return Entry(
                location=operation.location, mark=mark, kind=operation.kind, epoch=self._run.epoch, n=self._n,
                at=self._time, **facts,
            )  # fmt: skip

    return careless


def look_at_nothing(self: Session, wakes: int) -> None:
    """Takes the new count without reading the mailbox."""
    self._wakes = wakes


def take_stale(self: HistoryCache, run: Run) -> Kept | None:
    """Trusts a cached history whoever has had the run since."""
    kept = self._kept.get(run.id)
    return kept if kept is not None and kept.born == run.born else None


MUTATIONS = [
    Mutation(
        "no_fence", "what a lost epoch writes late is ignored", patches=[(fencing, "fence", lambda _, run, __: run)]
    ),
    Mutation(
        "highest_number",
        "a fence is a gap-free prefix, not the highest number seen",
        patches=[(fencing, "gap_free_prefix", lambda numbers, floor=0: max(numbers, default=floor))],
    ),
    Mutation("fence_recomputed", "a fence is final", patches=[(fencing, "fence", fence_recomputed)]),
    Mutation("fences_for_all", "only the owner records fences", store=FencesForAllStore),
    Mutation("overwriting", "an older epoch never writes over a newer one", store=OverwritingStore),
    Mutation("same_epoch", "every acquisition has an epoch of its own", store=SameEpochStore),
    Mutation("open_settle", "only the owner settles", store=OpenStore),
    Mutation("deaf_settle", "a settle fails if something asked for a turn meanwhile", store=DeafStore),
    Mutation("silent_announce", "a wake is acknowledged only when the holder will see it", store=SilentStore),
    Mutation(
        "look_at_nothing", "moved wakes mean: read the mailbox", patches=[(Session, "look_again", look_at_nothing)]
    ),
    Mutation("eager_deletion", "a message is deleted by a later turn than the one that consumed it", store=EagerStore),
    Mutation(
        "forgetful_consumption",
        "an entry that names a message has consumed it",
        patches=[(Loaded, "consumed", property(lambda _: set[str]()))],
    ),
    Mutation("no_timer", "a timer is armed before the settle that names it", patches=[(settling, "arm", arm_never)]),
    Mutation("no_due_on_acquire", "maintenance sees a run whose owner dies", store=HintlessStore),
    Mutation(
        "unrecorded_result",
        "nothing that depends on a result happens before it is recorded",
        patches=[(EntryWriter, "write", go_on_unrecorded(EntryWriter.write))],
    ),
    Mutation(
        "unconfirmed_effect",
        "an effect that must not be in vain is confirmed first",
        patches=[(EntryWriter, "confirm", lambda _: None)],
    ),
    Mutation(
        "stale_cache", "a cached history is used only by the next turn", patches=[(HistoryCache, "take", take_stale)]
    ),
]
