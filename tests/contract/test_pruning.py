"""What is left of entries that are pruned: floors, tombstones, and what a rollback needs."""

from typing import Any

import pytest

from durable.errors import Fenced, LimitExceeded
from durable.model.entry import Compensation
from durable.model.history import gap_free_prefix
from durable.ports import Store
from tests.contract.builders import NOW, a_message, an_entry, created, entries, owned, pages

UNDO = Compensation("shop.stock:release", '{"args": ["ü", 2], "kwargs": {}}')


def read(store: Store) -> Any:
    run = store.get("run-1")
    assert run is not None
    return run


def kept(store: Store) -> list[Any]:
    return [entry for page in pages(store) for entry in page.kept]


def test_a_floor_says_where_the_prefix_of_its_epoch_starts(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.record_floor("run-1", epoch=mine.epoch, n=7)
    store.record_floor("run-1", epoch=mine.epoch, n=12)
    run = read(store)
    assert (run.floors, run.pruned) == ({mine.epoch: 12}, True)
    assert gap_free_prefix({13, 14, 16}, floor=run.floors[mine.epoch]) == 14


def test_a_later_turns_floor_replaces_those_before(store: Store) -> None:
    created(store)
    store.record_floor("run-1", epoch=owned(store).epoch, n=7)
    mine = owned(store, owner="owner-2", now=NOW + 200, lease_until=NOW + 400)
    store.record_floor("run-1", epoch=mine.epoch, n=3)
    assert read(store).floors == {mine.epoch: 3}


def test_a_run_remembers_that_it_has_pruned(store: Store) -> None:
    created(store)
    mine = owned(store)
    assert not read(store).pruned
    store.mark_pruned("run-1", epoch=mine.epoch)
    assert read(store).pruned


def test_a_fenced_owner_notes_nothing(store: Store) -> None:
    created(store)
    zombie = owned(store)
    owner = owned(store, owner="owner-2", now=NOW + 200, lease_until=NOW + 400)
    with pytest.raises(Fenced):
        store.record_floor("run-1", epoch=zombie.epoch, n=1)
    with pytest.raises(Fenced):
        store.mark_pruned("run-1", epoch=zombie.epoch)
    with pytest.raises(Fenced):
        store.clear_carries("run-1", epoch=zombie.epoch)
    with pytest.raises(Fenced):
        store.annotate("run-1", epoch=zombie.epoch, tags=("a",), attributes=None)
    assert read(store) == owner


@pytest.mark.parametrize("count", [0, 1, 2, 25, 101])
def test_buried_messages_are_known_however_many(store: Store, count: int) -> None:
    ids = [f"m-{n}" for n in range(count)]
    store.bury("run-1", ids)
    store.bury("run-1", ids[:1] * 2)
    assert store.buried("run-1", [*ids, *ids[:1], "fresh"]) == set(ids)
    assert store.buried("run-10", ids) == set()
    assert store.buried("run-1", []) == set()


@pytest.mark.parametrize("message_id", ["meta", "m#", "run-1:charge:5:1", "~" * 256])
def test_hostile_message_ids_can_be_buried(store: Store, message_id: str) -> None:
    run = created(store)
    store.bury("run-1", [message_id])
    assert store.buried("run-1", [message_id, "other"]) == {message_id}
    assert store.get("run-1") == run


def test_how_a_step_is_undone_comes_with_its_entry(store: Store) -> None:
    entry = an_entry(compensation=UNDO)
    store.put_entry("run-1", entry)
    assert entries(store) == [entry]


def test_what_undoing_is_given_counts_against_the_limit(store: Store) -> None:
    with pytest.raises(LimitExceeded, match='what undoing "charge" is given'):
        store.put_entry("run-1", an_entry(compensation=Compensation("f", "x" * 300_000)))
    assert entries(store) == []


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_entries_that_are_kept_are_loaded_apart_in_order_of_record(store: Store, count: int) -> None:
    created(store)
    pruned = [an_entry(f"poll[{n}]/s", epoch=7, n=n + 1, value=f"{n}", compensation=UNDO) for n in range(count)]
    store.keep_compensations("run-1", list(reversed(pruned)))
    store.keep_compensations("run-1", pruned[:1])
    store.put_entry("run-1", an_entry("stays"))
    store.put_message("run-1", a_message())
    assert kept(store) == pruned
    assert entries(store) == [an_entry("stays")]
    assert [message.id for page in pages(store) for message in page.messages] == ["m-1"]
    assert not any(page.kept for page in pages(store, mailbox_only=True))


def test_an_entry_and_what_is_kept_of_it_do_not_meet(store: Store) -> None:
    entry = an_entry("k#7", mark="!@1", compensation=UNDO)
    store.put_entry("run-1", entry)
    store.keep_compensations("run-1", [entry])
    store.delete_entries("run-1", [entry.key], epoch=entry.epoch)
    assert (entries(store), kept(store)) == ([], [entry])


def test_kept_entries_sort_by_epoch_and_number(store: Store) -> None:
    orders = [(9, 10), (9, 9), (10, 1), (189_388_800_000, 2)]
    pruned = [an_entry("s", epoch=epoch, n=n) for epoch, n in orders]
    store.keep_compensations("run-1", pruned)
    assert [entry.order for entry in kept(store)] == sorted(orders)
