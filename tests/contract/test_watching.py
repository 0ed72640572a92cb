"""Whoever waits for the end of a run is noted with it, and an ended run remembers that others have yet to be told."""

from dataclasses import replace
from typing import Any

import pytest

from durable.errors import Fenced
from durable.model.run import Run, Watcher
from durable.ports import Created, Missing, NotRunnable, Settled, Store, WakesMoved
from tests.contract.builders import HOUR, NOW, a_run, acquire, created, owned, settle, settlement

ANN, BEN = Watcher("run-a", "wait/for#2"), Watcher("run-b", "child")


def record(store: Store, run_id: str = "run-1") -> Run:
    run = store.get(run_id)
    assert run is not None
    return run


def ended(store: Store, run_id: str = "run-1", status: Any = "completed", **fields: Any) -> Run:
    run = owned(store, run_id)
    assert settle(store, run, status, **fields) == Settled()
    return record(store, run_id)


# What a run knows of others


def test_what_links_a_run_to_others_is_read_as_it_was_written(store: Store) -> None:
    headers = {"traceparent": "00-4bf9-00f0-01", "tenant": "größe", "empty": ""}
    run = created(
        store, parent="run-0", parent_location="a/b%2F#2", headers=headers, lane="singleton:fulfil:k", watched=True,
    )  # fmt: skip
    assert record(store) == run
    assert owned(store) == replace(
        run, epoch=run.epoch + 1, lease_owner="owner-1", lease_until=NOW + 150, started_at=NOW
    )


def test_a_run_without_links_has_none(store: Store) -> None:
    run = created(store)
    assert (run.parent_location, run.watched, dict(run.headers), run.lane, run.outbox) == (None, False, {}, None, None)
    assert record(store) == run


def test_turns_leave_the_links_alone(store: Store) -> None:
    links = {"parent": "run-0", "parent_location": "child", "headers": {"a": "b"}, "lane": "l", "watched": True}
    created(store, **links)
    settle(store, owned(store), due_at=NOW + HOUR, armed=NOW + HOUR)
    ended(store, outbox="graceful", due_at=NOW + 30)
    run = record(store)
    assert {name: getattr(run, name) for name in links} == links


def test_a_successor_can_inherit_them(store: Store) -> None:
    created(store, parent="run-0", parent_location="child", headers={"a": "b"}, lane="l", watched=True)
    mine = owned(store)
    successor = a_run(
        "run-1~2", lineage="run-1", parent="run-0", parent_location="child", headers={"a": "b"}, lane="l", watched=True,
    )  # fmt: skip
    answer = store.continue_as_new(
        "run-1", epoch=mine.epoch, wakes=0, settlement=settlement("completed"), successor=successor, input=None
    )
    assert answer == Settled()
    assert record(store, "run-1~2") == successor


# Watching


def test_a_watched_run_says_so_and_its_holder_looks_again(store: Store) -> None:
    created(store)
    mine = owned(store)
    run = store.watch("run-1", "run-1", ANN)
    assert run is not None
    assert run == replace(mine, watched=True, wakes=1)
    assert record(store) == run
    assert settle(store, mine, "completed") == WakesMoved(1, run)
    assert store.settle("run-1", epoch=mine.epoch, wakes=1, settlement=settlement("completed")) == Settled()
    assert record(store).watched


def test_watchers_are_known_each_once(store: Store) -> None:
    created(store)
    assert list(store.watchers("run-1")) == []
    for watcher in (ANN, BEN, ANN, Watcher("run-a", "other")):
        store.watch("run-1", "run-1", watcher)
    assert set(store.watchers("run-1")) == {ANN, BEN, Watcher("run-a", "other")}
    assert len(store.watchers("run-1")) == 3


def test_names_that_could_be_confused_are_not(store: Store) -> None:
    created(store)
    created(store, "run-10")
    theirs = [Watcher("a", "b#c"), Watcher("a", "b/c"), Watcher("a", "b"), Watcher("a.b", "c"), Watcher("a:b", "c#2")]
    for watcher in theirs:
        store.watch("run-1", "run-1", watcher)
    store.watch("run-10", "run-10", ANN)
    assert sorted(store.watchers("run-1"), key=repr) == sorted(theirs, key=repr)
    assert list(store.watchers("run-10")) == [ANN]


def test_many_watchers_are_all_known(store: Store) -> None:
    created(store)
    many = {Watcher(f"run-{i:03}", "child") for i in range(40)}
    for watcher in many:
        store.watch("run-1", "run-1", watcher)
    assert set(store.watchers("run-1")) == many
    assert record(store).wakes == 40


def test_runs_that_continue_one_another_share_who_waits_for_them(store: Store) -> None:
    created(store)
    created(store, "run-1~2", lineage="run-1")
    store.watch("run-1~2", "run-1", ANN)
    assert list(store.watchers("run-1")) == [ANN]
    assert list(store.watchers("run-1~2")) == []
    assert (record(store, "run-1~2").watched, record(store).watched) == (True, False)


def test_an_ended_run_can_be_watched_and_tells_how_it_ended(store: Store) -> None:
    created(store)
    before = ended(store, output='"out"')
    run = store.watch("run-1", "run-1", ANN)
    assert run == replace(before, watched=True, wakes=before.wakes + 1)
    assert list(store.watchers("run-1")) == [ANN]


def test_a_missing_run_is_not_made_by_watching_it(store: Store) -> None:
    assert store.watch("nobody", "nobody", ANN) is None
    assert store.get("nobody") is None
    assert acquire(store, "nobody") == Missing()


def test_a_watched_run_shows_in_its_history_as_it_did(store: Store) -> None:
    created(store)
    store.watch("run-1", "run-1", ANN)
    page = store.load("run-1")
    assert (list(page.entries), list(page.messages), list(page.kept)) == ([], [], [])


def test_who_waited_is_forgotten_with_the_run(store: Store) -> None:
    created(store)
    store.watch("run-1", "run-1", ANN)
    ended(store)
    store.delete_run("run-1")
    assert list(store.watchers("run-1")) == []
    assert store.create(a_run()) == Created(a_run())
    assert record(store).watched is False


def test_who_waited_is_remembered_while_a_successor_goes_on(store: Store) -> None:
    created(store)
    store.watch("run-1", "run-1", ANN)
    mine = owned(store)
    successor = a_run("run-1~2", lineage="run-1", watched=True)
    store.continue_as_new(
        "run-1", epoch=mine.epoch, wakes=1, settlement=settlement("completed"), successor=successor, input=None
    )
    store.delete_run("run-1")
    assert list(store.watchers("run-1")) == [ANN]
    ended(store, "run-1~2")
    store.delete_run("run-1~2")
    assert list(store.watchers("run-1")) == []


# What an ended run owes


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
def test_an_end_that_others_have_to_be_told_of_leaves_the_run_due(store: Store, mode: str) -> None:
    created(store)
    run = ended(store, outbox=mode, due_at=NOW + 30)
    assert (run.status, run.outbox, run.due_at) == ("completed", mode, NOW + 30)
    assert store.due_runs(before=NOW + 30, limit=9) == ["run-1"]
    assert store.due_runs(before=NOW + 29, limit=9) == []


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "timed_out", "dead"])
def test_once_all_are_told_the_run_is_as_any_that_has_ended(store: Store, status: str) -> None:
    created(store)
    run = ended(store, status=status, outbox="graceful", due_at=NOW + 30)
    store.clear_outbox("run-1", epoch=run.epoch)
    assert record(store) == replace(run, outbox=None, due_at=None)
    assert store.due_runs(before=NOW + HOUR, limit=9) == []
    assert [row.outcome for row in store.list_runs("fulfil").runs] == [status]


def test_to_clear_it_twice_changes_nothing_more(store: Store) -> None:
    created(store)
    run = ended(store, outbox="graceful", due_at=NOW + 30)
    store.clear_outbox("run-1", epoch=run.epoch)
    cleared = record(store)
    store.clear_outbox("run-1", epoch=run.epoch)
    assert record(store) == cleared


def test_a_clear_of_another_epoch_leaves_the_debt(store: Store) -> None:
    created(store)
    run = ended(store, outbox="graceful", due_at=NOW + 30)
    store.clear_outbox("run-1", epoch=run.epoch - 1)
    store.clear_outbox("run-1", epoch=run.epoch + 1)
    assert record(store) == run


def test_a_clear_leaves_open_and_missing_runs_alone(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.clear_outbox("run-1", epoch=mine.epoch)
    store.clear_outbox("nobody", epoch=7)
    assert (record(store), store.get("nobody")) == (mine, None)


def test_a_run_that_owes_something_takes_no_turn(store: Store) -> None:
    created(store)
    run = ended(store, outbox="graceful", due_at=NOW + 30)
    assert acquire(store, owner="owner-2", now=NOW + 60, lease_until=NOW + 200) == NotRunnable(run)


def test_a_turn_that_does_not_end_the_run_owes_nothing(store: Store) -> None:
    created(store)
    settle(store, owned(store), due_at=NOW + HOUR, armed=NOW + HOUR)
    assert record(store).outbox is None


def test_a_run_that_is_retried_owes_nothing_of_its_former_end(store: Store) -> None:
    created(store)
    ended(store, status="failed", outbox="graceful", due_at=NOW + 30)
    store.reopen("run-1", owner="owner-2", now=NOW + 40, lease_until=NOW + 200)
    assert (record(store).outbox, record(store).ended) == (None, False)


# Termination


def test_a_terminated_run_owes_its_end_to_others_at_once(store: Store) -> None:
    created(store)
    mine = owned(store)
    run = store.terminate("run-1", now=NOW + 9, reason="enough")
    assert run is not None
    assert (run.status, run.outbox, run.due_at, run.reason) == ("cancelled", "terminate", NOW + 9, "enough")
    assert (run.epoch, run.lease_owner, run.lease_until) == (mine.epoch + 1, None, None)
    assert record(store) == run
    assert store.due_runs(before=NOW + 9, limit=9) == ["run-1"]
    store.clear_outbox("run-1", epoch=run.epoch)
    assert store.due_runs(before=NOW + HOUR, limit=9) == []


def test_the_holder_of_a_terminated_run_can_neither_settle_nor_clear(store: Store) -> None:
    created(store)
    mine = owned(store)
    run = store.terminate("run-1", now=NOW + 9, reason="enough")
    with pytest.raises(Fenced):
        settle(store, mine, "completed", outbox="graceful")
    store.clear_outbox("run-1", epoch=mine.epoch)
    assert record(store) == run


def test_to_terminate_a_run_that_has_ended_adds_no_debt(store: Store) -> None:
    created(store)
    run = ended(store)
    assert store.terminate("run-1", now=NOW + 9, reason="late") == run
    assert record(store) == run


def test_a_terminated_run_keeps_its_links(store: Store) -> None:
    created(store, parent="run-0", parent_location="child", headers={"a": "b"}, lane="l")
    store.watch("run-1", "run-1", ANN)
    run = store.terminate("run-1", now=NOW + 9, reason="")
    assert run is not None
    assert (run.parent, run.parent_location, run.lane, run.watched) == ("run-0", "child", "l", True)
    assert run.headers == {"a": "b"}
    assert list(store.watchers("run-1")) == [ANN]
