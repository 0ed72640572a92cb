"""A run that has ended goes on: taken by one owner, its ending forgotten, part of its history taken back."""

from typing import Any

import pytest

from durable.errors import ErrorInfo, Fenced
from durable.model.history import counting_entries
from durable.model.run import Cut, Run
from durable.ports import Acquired, Held, Missing, NotRunnable, Store
from tests.contract.builders import NOW, a_message, acquire, an_entry, created, entries, owned, settle

ERROR = ErrorInfo(type="Declined", message="no")


def reopen(store: Store, run_id: str = "run-1", **arguments: Any) -> Any:
    return store.reopen(run_id, **{"owner": "mender", "now": NOW + 9, "lease_until": NOW + 99, **arguments})


def ended(store: Store, status: Any = "failed", **fields: Any) -> Run:
    created(store)
    settle(store, owned(store), status, **fields)
    run = store.get("run-1")
    assert run is not None
    return run


def reopened(store: Store, **arguments: Any) -> Run:
    answer = reopen(store, **arguments)
    assert isinstance(answer, Acquired), answer
    return answer.run


@pytest.mark.parametrize("status", ["failed", "dead"])
def test_a_run_that_failed_or_died_is_taken_and_its_ending_forgotten(store: Store, status: str) -> None:
    before = ended(store, status, error=ERROR, reason="because", failed_at=("charge",), undelivered=2)
    run = reopened(store)
    assert (run.epoch, run.lease_owner, run.lease_until) == (before.epoch + 1, "mender", NOW + 99)
    assert (run.status, run.error, run.reason, run.finished_at) == ("suspended", None, None, None)
    assert (run.failed_at, run.started_at, run.due_at) == (("charge",), before.started_at, NOW + 99)
    assert not run.taken_over
    assert store.get("run-1") == run


def test_listings_take_a_reopened_run_for_open(store: Store) -> None:
    ended(store, "failed")
    reopened(store)
    assert [row.outcome for row in store.list_runs("fulfil").runs] == [None]
    assert store.runs_needing_attention("failed", limit=9).runs == []
    assert store.due_runs(before=NOW + 99, limit=9) == ["run-1"]


@pytest.mark.parametrize("status", ["completed", "cancelled", "timed_out"])
def test_a_run_that_ended_otherwise_is_taken_only_where_asked_for(store: Store, status: str) -> None:
    before = ended(store, status, output='"out"', output_stored=True)
    assert reopen(store) == NotRunnable(before)
    assert store.get("run-1") == before
    run = reopened(store, any_ended=True)
    assert (run.status, run.output, run.output_stored) == ("suspended", None, False)


def test_a_terminated_run_is_taken_over(store: Store) -> None:
    created(store)
    zombie = owned(store)
    store.terminate("run-1", now=NOW + 5, reason="")
    run = reopened(store, any_ended=True)
    assert (run.epoch, run.taken_over) == (zombie.epoch + 2, True)


def test_a_request_to_cancel_dies_with_the_run_that_it_ended(store: Store) -> None:
    created(store)
    store.request_cancel("run-1", mode="compensate", now=NOW)
    settle(store, owned(store), "cancelled")
    assert reopened(store, any_ended=True).cancel_requested is None


def test_only_one_owner_takes_it_and_recognises_its_own_success(store: Store) -> None:
    ended(store)
    run = reopened(store)
    assert reopen(store) == Acquired(run)
    assert reopen(store, owner="another") == Held(run)
    assert acquire(store, owner="another", now=NOW + 9) == Held(run)


@pytest.mark.parametrize("any_ended", [False, True])
def test_an_open_run_is_not_reopened(store: Store, any_ended: bool) -> None:
    run = created(store)
    assert reopen(store, any_ended=any_ended) == NotRunnable(run)
    assert store.get("run-1") == run


def test_a_missing_run_is_not_reopened(store: Store) -> None:
    assert reopen(store, "nobody", any_ended=True) == Missing()
    assert store.get("nobody") is None


def test_what_a_cut_takes_back_no_longer_counts(store: Store) -> None:
    ended(store)
    run = reopened(store)
    kept = an_entry("a", epoch=run.born + 1, n=1)
    store.put_entry("run-1", kept)
    store.put_entry("run-1", an_entry("b", epoch=run.born + 1, n=2))
    store.record_cut("run-1", epoch=run.epoch, cut=Cut(run.born + 1, 2, run.epoch - 1), unburied=())
    again = an_entry("c", epoch=run.epoch, n=1)
    store.put_entry("run-1", again)
    now = store.get("run-1")
    assert now is not None
    assert list(counting_entries(now, entries(store))) == [kept, again]


def test_cuts_add_up_and_the_same_cut_counts_once(store: Store) -> None:
    ended(store)
    epoch = reopened(store).epoch
    cuts = (Cut(5, 1, 6), Cut(5, 1, 60), Cut(7, 3, 8))
    for cut in (*cuts, cuts[0]):
        store.record_cut("run-1", epoch=epoch, cut=cut, unburied=())
    run = store.get("run-1")
    assert run is not None
    assert run.cuts == cuts


@pytest.mark.parametrize("lineage", [None, "root"])
@pytest.mark.parametrize("count", [1, 99, 100, 230])
def test_a_cut_digs_up_the_messages_that_it_gives_back(store: Store, lineage: str | None, count: int) -> None:
    created(store, lineage=lineage)
    mine = owned(store)
    ids = [f"m-{n}" for n in range(count)]
    store.bury(lineage or "run-1", [*ids, "stays"])
    cut = Cut(mine.epoch, 1, mine.epoch)
    for _ in range(2):
        store.record_cut("run-1", epoch=mine.epoch, cut=cut, unburied=[*ids, ids[0]])
        assert store.buried(lineage or "run-1", [*ids, "stays"]) == {"stays"}
    run = store.get("run-1")
    assert run is not None
    assert run.cuts == (cut,)


@pytest.mark.parametrize("unburied", [[], ["m-1"], [f"m-{n}" for n in range(150)]])
def test_a_fenced_owner_cuts_nothing(store: Store, unburied: list[str]) -> None:
    created(store)
    zombie = owned(store)
    store.bury("run-1", ["m-1"])
    owner = owned(store, owner="owner-2", now=NOW + 200, lease_until=NOW + 400)
    with pytest.raises(Fenced):
        store.record_cut("run-1", epoch=zombie.epoch, cut=Cut(1, 1, 1), unburied=unburied)
    with pytest.raises(Fenced):
        store.record_cut("nobody", epoch=1, cut=Cut(1, 1, 1), unburied=unburied)
    assert store.get("run-1") == owner
    assert store.buried("run-1", ["m-1"]) == {"m-1"}
    assert store.get("nobody") is None


def test_a_message_given_back_is_in_the_mailbox_again(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.bury("run-1", ["m-1"])
    store.put_message("run-1", a_message())
    store.record_cut("run-1", epoch=mine.epoch, cut=Cut(1, 1, 1), unburied=["m-1"])
    assert store.load("run-1", mailbox_only=True).messages == [a_message()]
