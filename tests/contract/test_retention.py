"""Ended runs wait for their deletion apart from those that are due, and one whose deletion has begun stays ended."""

from dataclasses import replace
from typing import Any

import pytest

from durable.model.run import Run
from durable.ports import NotRunnable, Store
from tests.contract.builders import HOUR, NOW, a_message, an_entry, created, entries, messages, owned, settle

DAY = 24 * HOUR


def ended(store: Store, run_id: str = "run-1", status: Any = "completed", **fields: Any) -> Run:
    created(store, run_id)
    settle(store, owned(store, run_id), status, **fields)
    return record(store, run_id)


def record(store: Store, run_id: str = "run-1") -> Run:
    run = store.get(run_id)
    assert run is not None
    return run


def expired(store: Store, before: float = NOW + 9 * DAY, limit: int = 9) -> list[str]:
    return list(store.expired_runs(before=before, limit=limit))


def due(store: Store) -> list[str]:
    return list(store.due_runs(before=NOW + 9 * DAY, limit=9))


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "timed_out", "dead"])
def test_an_ended_run_is_listed_for_deletion_and_not_as_due(store: Store, status: str) -> None:
    run = ended(store, status=status, due_at=NOW + DAY)
    assert run.due_at == NOW + DAY
    assert (expired(store), due(store)) == (["run-1"], [])
    assert expired(store, before=NOW + DAY - 1) == []


def test_a_run_that_owes_something_is_due_first_and_listed_once_it_owes_nothing(store: Store) -> None:
    run = ended(store, outbox="graceful", due_at=NOW + 30)
    assert (expired(store), due(store)) == ([], ["run-1"])
    store.clear_outbox("run-1", epoch=run.epoch, delete_at=NOW + DAY)
    assert record(store) == replace(run, outbox=None, due_at=NOW + DAY)
    assert (expired(store), due(store)) == (["run-1"], [])


def test_open_runs_and_those_that_are_kept_for_good_are_not_listed(store: Store) -> None:
    ended(store, "kept")
    created(store, "open", due_at=NOW)
    assert (expired(store), due(store)) == ([], ["open"])


def test_the_longest_due_comes_first_and_no_more_than_asked_for(store: Store) -> None:
    for number in (3, 1, 2):
        ended(store, f"run-{number}", due_at=NOW + number)
    assert expired(store, limit=2) == ["run-1", "run-2"]


def test_a_deletion_that_is_put_off_comes_later(store: Store) -> None:
    run = ended(store, due_at=NOW + 5)
    store.postpone_deletion("run-1", epoch=run.epoch, until=NOW + DAY)
    assert (record(store).due_at, expired(store, before=NOW + HOUR), expired(store)) == (NOW + DAY, [], ["run-1"])


def test_what_is_not_to_be_deleted_is_not_put_off(store: Store) -> None:
    kept = ended(store, "kept")
    owing = ended(store, "owing", outbox="graceful", due_at=NOW + 30)
    retried = ended(store, "retried", due_at=NOW + 5)
    created(store, "open")
    before = {run_id: store.get(run_id) for run_id in ("kept", "owing", "retried", "open")}
    for run_id, epoch in (("kept", kept.epoch), ("owing", owing.epoch), ("retried", retried.epoch - 1), ("open", 1)):
        store.postpone_deletion(run_id, epoch=epoch, until=NOW + DAY)
    store.postpone_deletion("nobody", epoch=1, until=NOW + DAY)
    assert {run_id: store.get(run_id) for run_id in before} == before
    assert store.get("nobody") is None


def test_a_run_whose_deletion_has_begun_is_not_reopened(store: Store) -> None:
    run = ended(store, status="failed", due_at=NOW + DAY)
    assert store.mark_for_deletion("run-1", epoch=run.epoch, now=NOW + 9)
    assert store.mark_for_deletion("run-1", epoch=run.epoch, now=NOW + 10), "the reply to the first may be lost"
    marked = replace(run, deleting=True)
    assert record(store) == marked
    for any_ended in (False, True):
        answer = store.reopen("run-1", owner="o", now=NOW + 9, lease_until=NOW + 99, any_ended=any_ended)
        assert answer == NotRunnable(marked)
    store.postpone_deletion("run-1", epoch=run.epoch, until=NOW + 9 * DAY)
    assert record(store) == marked


def test_a_run_that_was_kept_for_good_is_found_again_when_its_deletion_is_cut_short(store: Store) -> None:
    run = ended(store)
    store.mark_for_deletion("run-1", epoch=run.epoch, now=NOW + 9)
    assert expired(store) == ["run-1"]
    store.delete_run("run-1")
    assert (expired(store), store.get("run-1")) == ([], None)


def test_only_a_run_that_has_ended_and_owes_nothing_is_marked(store: Store) -> None:
    owing = ended(store, "owing", outbox="graceful", due_at=NOW + 30)
    created(store, "open")
    held = owned(store, "open")
    retried = ended(store, "retried", status="failed")
    store.reopen("retried", owner="o", now=NOW + 9, lease_until=NOW + 99)
    before = {run_id: store.get(run_id) for run_id in ("owing", "open", "retried")}
    for run in (owing, held, retried):
        assert not store.mark_for_deletion(run.id, epoch=run.epoch, now=NOW + 9)
    assert not store.mark_for_deletion("nobody", epoch=1, now=NOW)
    assert {run_id: store.get(run_id) for run_id in before} == before


@pytest.mark.parametrize("items", [0, 3, 40])
def test_a_run_that_is_emptied_keeps_its_record_and_what_its_lineage_needs(store: Store, items: int) -> None:
    run = ended(store, due_at=NOW + DAY)
    for n in range(items):
        store.put_entry("run-1", an_entry(f"s{n}", n=n + 1))
    store.put_message("run-1", a_message())
    store.put_payload("run-1", "output", '"out"', epoch=1)
    store.put_state("run-1", "progress", "1", epoch=1)
    store.put_reply("run-1", "m-0", "done", expires_at=NOW + 9)
    store.bury("run-1", ["m-0"])
    store.start_task("run-1", "print:1:1", worker="w", now=NOW, expires_at=NOW + HOUR)
    store.empty_run("run-1")
    assert record(store) == run
    assert (entries(store), messages(store), dict(store.states("run-1"))) == ([], [], {})
    assert (store.get_payload("run-1", "output", epoch=1), store.get_task("run-1", "print:1:1")) == (None, None)
    assert (store.get_reply("run-1", "m-0"), store.buried("run-1", ["m-0"])) == ("done", {"m-0"})
    store.empty_run("nobody")
    assert store.get("nobody") is None
