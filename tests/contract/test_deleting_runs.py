"""A run that is deleted leaves nothing behind, however often that is tried."""

import pytest

from durable.ports import Created, KeyTaken, Store
from tests.contract.builders import NOW, a_message, a_run, an_entry, created, entries, messages, owned, settle


def filled(store: Store, run_id: str = "run-1", items: int = 3) -> None:
    for n in range(items):
        store.put_entry(run_id, an_entry(f"s{n}", n=n + 1))
        store.append_stream(run_id, "tokens", f"{n:03}", "text")
    store.keep_compensations(run_id, [an_entry("pruned")])
    store.put_payload(run_id, "output", '"out"', epoch=1)
    store.put_message(run_id, a_message())
    store.put_state(run_id, "progress", "1", epoch=1)
    store.put_reply(run_id, "m-0", "done", expires_at=NOW + 9)
    store.bury(run_id, ["m-0"])


def left(store: Store, run_id: str = "run-1") -> list[object]:
    return [
        thing
        for thing in (
            store.get(run_id),
            *entries(store, run_id),
            *messages(store, run_id),
            *store.load(run_id).kept,
            store.get_payload(run_id, "output", epoch=1),
            *store.states(run_id),
            *store.read_stream(run_id, "tokens"),
            store.get_reply(run_id, "m-0"),
            *store.buried(run_id, ["m-0"]),
        )
        if thing is not None
    ]


@pytest.mark.parametrize("items", [0, 3, 40])
def test_everything_goes(store: Store, items: int) -> None:
    created(store)
    filled(store, items=items)
    settle(store, owned(store), "completed")
    store.delete_run("run-1")
    assert left(store) == []
    assert store.list_runs("fulfil").runs == []


def test_other_runs_stay(store: Store) -> None:
    created(store, "run-10")
    filled(store, "run-10")
    before = left(store, "run-10")
    created(store)
    filled(store)
    store.delete_run("run-1")
    assert left(store, "run-10") == before


def test_a_deletion_may_be_repeated_and_of_a_missing_run_is_nothing(store: Store) -> None:
    created(store)
    store.delete_run("run-1")
    store.delete_run("run-1")
    store.put_message("run-1", a_message("early"))
    store.delete_run("run-1")
    assert [message.id for message in messages(store)] == ["early"]


def test_the_id_can_be_used_again_and_the_key_stays_spent(store: Store) -> None:
    store.create(a_run(), idempotency_key="order-42")
    store.delete_run("run-1")
    again = a_run(writer="another")
    assert store.create(again, idempotency_key="order-42") == KeyTaken("run-1")
    assert store.create(again) == Created(again)


def test_a_lineage_keeps_its_tombstones_until_its_last_run_goes(store: Store) -> None:
    created(store, "root", successor="root~2")
    created(store, "root~2", lineage="root")
    store.bury("root", ["m-0"])
    store.delete_run("root")
    assert store.buried("root", ["m-0"]) == {"m-0"}
    store.delete_run("root~2")
    assert store.buried("root", ["m-0"]) == set()
