"""A run is asked to end: its next turn, or the one that holds it, will see so."""

from typing import Any

import pytest

from durable.ports import Acquired, Settled, Store, WakesMoved
from tests.contract.builders import HOUR, NOW, acquire, created, owned, settle, settlement


def cancel(store: Store, mode: Any = "graceful", run_id: str = "run-1", now: float = NOW + 5) -> Any:
    return store.request_cancel(run_id, mode=mode, now=now)


def asleep(store: Store) -> None:
    created(store)
    settle(store, owned(store), due_at=NOW + HOUR, armed=NOW + HOUR)


def test_a_run_at_rest_is_due_now(store: Store) -> None:
    asleep(store)
    run = cancel(store)
    assert (run.cancel_requested, run.due_at, run.wakes, run.status) == ("graceful", NOW + 5, 1, "suspended")
    assert store.get("run-1") == run
    assert store.due_runs(before=NOW + 5, limit=9) == ["run-1"]


def test_a_run_that_nothing_was_due_for_is_due_now(store: Store) -> None:
    created(store)
    settle(store, owned(store))
    assert cancel(store).due_at == NOW + 5


def test_whoever_holds_the_run_cannot_settle_without_seeing_it(store: Store) -> None:
    created(store)
    mine = owned(store)
    run = cancel(store)
    assert (run.due_at, run.lease_owner, run.epoch) == (mine.due_at, mine.lease_owner, mine.epoch)
    assert settle(store, mine) == WakesMoved(1, run)
    assert run.cancel_requested == "graceful"
    assert store.settle("run-1", epoch=mine.epoch, wakes=1, settlement=settlement()) == Settled()


def test_a_lease_that_has_run_out_is_nobodys(store: Store) -> None:
    created(store)
    owned(store)
    assert cancel(store, now=NOW + 150).due_at == NOW + 150


def test_the_next_turn_sees_it(store: Store) -> None:
    asleep(store)
    cancel(store, "compensate")
    assert owned(store, owner="owner-2").cancel_requested == "compensate"


@pytest.mark.parametrize(
    ("modes", "kept"),
    [
        (["graceful", "graceful"], "graceful"),
        (["graceful", "compensate"], "compensate"),
        (["compensate", "graceful"], "compensate"),
    ],
)
def test_a_request_to_compensate_is_not_weakened(store: Store, modes: list[str], kept: str) -> None:
    asleep(store)
    for mode in modes:
        cancel(store, mode)
    run = store.get("run-1")
    assert run is not None
    assert (run.cancel_requested, run.wakes) == (kept, 2)


def test_a_blocked_run_is_not_due_before_it_is_unblocked(store: Store) -> None:
    created(store)
    settle(store, owned(store), "blocked", code_version="v1")
    run = cancel(store)
    assert (run.status, run.cancel_requested, run.due_at) == ("blocked", "graceful", None)
    unblocked = store.unblock("run-1", now=NOW + 9)
    assert unblocked is not None
    assert (unblocked.cancel_requested, unblocked.due_at) == ("graceful", NOW + 9)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "timed_out", "dead"])
def test_an_ended_run_is_left_as_it_is(store: Store, status: str) -> None:
    created(store)
    settle(store, owned(store), status)
    before = store.get("run-1")
    assert cancel(store) == before
    assert store.get("run-1") == before


def test_a_missing_run_stays_missing(store: Store) -> None:
    assert cancel(store, run_id="nobody") is None
    assert store.get("nobody") is None


def test_a_run_that_rolls_back_says_what_it_will_become(store: Store) -> None:
    created(store)
    mine = owned(store)
    settle(store, mine, "rolling_back", ending="cancelled", failed_at=("a", "b!@1"), deadline=NOW + HOUR)
    run = store.get("run-1")
    assert run is not None
    assert (run.ending, run.failed_at, run.deadline, run.ended) == ("cancelled", ("a", "b!@1"), NOW + HOUR, False)
    assert isinstance(acquire(store, owner="owner-2"), Acquired)
    stopped = store.terminate("run-1", now=NOW + 9, reason="")
    assert stopped is not None
    assert (stopped.status, stopped.ending) == ("cancelled", None)
