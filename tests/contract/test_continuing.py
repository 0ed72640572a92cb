"""A run ends and another goes on in its place: both or neither."""

from dataclasses import replace
from typing import Any

import pytest

from durable.errors import Fenced, LimitExceeded
from durable.model.run import Carried, Run
from durable.ports import Exists, Settled, Store, WakesMoved
from tests.contract.builders import NOW, a_run, created, owned, settle, settlement

INPUT = '{"page": 2}'


def a_successor(run: Run, **fields: Any) -> Run:
    carried = Carried(run.id, ("m-1", "m-2"))
    return a_run(
        f"{run.id}~2", lineage="run-1", writer="writer", carries=carried, deadline=NOW + 9, pruned=True, **fields
    )


def go_on(store: Store, run: Run, successor: Run, wakes: int = 0, input: str | None = None, **fields: Any) -> Any:
    return store.continue_as_new(
        run.id,
        epoch=run.epoch,
        wakes=wakes,
        settlement=settlement("completed", **fields),
        successor=successor,
        input=input,
    )


def test_the_run_completes_and_its_successor_begins(store: Store) -> None:
    created(store)
    mine = owned(store)
    successor = a_successor(mine, input_stored=True)
    assert go_on(store, mine, successor, input=INPUT, output='"out"') == Settled()
    run = store.get("run-1")
    assert run is not None
    assert (run.status, run.successor, run.output, run.lease_owner) == ("completed", "run-1~2", '"out"', None)
    assert run.clean_epoch == mine.epoch
    assert store.get("run-1~2") == successor
    assert store.get_payload("run-1~2", "input") == INPUT
    assert [row.outcome for row in store.list_runs("fulfil").runs] == [None, "completed"]
    assert store.due_runs(before=NOW + 1e6, limit=9) == ["run-1~2"]


def test_a_lost_reply_is_recognised(store: Store) -> None:
    created(store)
    mine = owned(store)
    successor = a_successor(mine)
    assert go_on(store, mine, successor) == Settled()
    taken = owned(store, "run-1~2")
    assert go_on(store, mine, successor) == Settled()
    assert store.get("run-1~2") == taken


def test_a_wake_in_between_stops_both(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.announce("run-1", now=NOW)
    before = replace(mine, wakes=1)
    assert go_on(store, mine, a_successor(mine), input=INPUT) == WakesMoved(1, before)
    assert (store.get("run-1"), store.get("run-1~2")) == (before, None)
    assert store.get_payload("run-1~2", "input") is None


def test_a_fenced_turn_starts_no_successor(store: Store) -> None:
    created(store)
    zombie = owned(store)
    owner = owned(store, owner="owner-2", now=NOW + 200, lease_until=NOW + 400)
    with pytest.raises(Fenced):
        go_on(store, zombie, a_successor(zombie))
    assert (store.get("run-1"), store.get("run-1~2")) == (owner, None)
    settle(store, owner)
    store.release("run-1", epoch=owner.epoch, now=NOW)
    with pytest.raises(Fenced):
        go_on(store, zombie, a_successor(zombie))


def test_an_id_that_another_writer_has_taken_stops_both(store: Store) -> None:
    created(store)
    theirs = created(store, "run-1~2")
    mine = owned(store)
    assert go_on(store, mine, a_successor(mine), input=INPUT) == Exists(theirs)
    assert (store.get("run-1"), store.get("run-1~2")) == (mine, theirs)
    assert store.get_payload("run-1~2", "input") is None


def test_an_input_over_the_limit_stops_both(store: Store) -> None:
    created(store)
    mine = owned(store)
    with pytest.raises(LimitExceeded, match="the input"):
        go_on(store, mine, a_successor(mine), input="x" * 405_000)
    assert (store.get("run-1"), store.get("run-1~2")) == (mine, None)


def test_messages_carried_over_are_named_until_they_are_copied(store: Store) -> None:
    store.create(a_successor(a_run()))
    mine = owned(store, "run-1~2")
    assert mine.carries == Carried("run-1", ("m-1", "m-2"))
    store.clear_carries(mine.id, epoch=mine.epoch)
    store.clear_carries(mine.id, epoch=mine.epoch)
    run = store.get(mine.id)
    assert run is not None
    assert run.carries is None


def test_a_settle_keeps_what_is_not_its_own(store: Store) -> None:
    successor = a_successor(a_run(), attributes={"page": 2}, tags=("shop",), cancel_requested="graceful")
    store.create(successor)
    settle(store, owned(store, successor.id), deadline=NOW + 9)
    run = store.get(successor.id)
    assert run is not None
    names = ("lineage", "carries", "attributes", "tags", "cancel_requested", "pruned", "deadline")
    assert all(getattr(run, name) == getattr(successor, name) for name in names)
