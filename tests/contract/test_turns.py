"""One turn at a time: acquire, announce, fence, settle, release, terminate, unblock."""

from typing import Any

import pytest

from durable.errors import ErrorInfo, Fenced, LimitExceeded
from durable.model.run import Wait
from durable.ports import Acquired, Held, Missing, NotRunnable, Settled, Store, WakesMoved
from tests.contract.builders import HOUR, NOW, acquire, created, owned, settle, settlement


def read(store: Store, run_id: str = "run-1") -> Any:
    run = store.get(run_id)
    assert run is not None
    return run


def test_acquiring_adds_one_to_the_epoch_and_takes_the_lease(store: Store) -> None:
    run = created(store)
    mine = owned(store)
    assert (mine.epoch, mine.lease_owner, mine.lease_until) == (run.epoch + 1, "owner-1", NOW + 150)
    assert not mine.taken_over
    assert read(store) == mine


def test_the_first_turn_starts_the_run_and_no_later_one_does(store: Store) -> None:
    created(store)
    mine = owned(store)
    assert mine.started_at == NOW
    assert acquire(store) == Acquired(mine)
    assert owned(store, owner="owner-2", now=NOW + 200, lease_until=NOW + 400).started_at == NOW


def test_a_missing_run_cannot_be_acquired(store: Store) -> None:
    assert acquire(store, "nobody") == Missing()
    assert store.get("nobody") is None


def test_a_live_lease_keeps_others_out(store: Store) -> None:
    created(store)
    mine = owned(store)
    assert acquire(store, owner="owner-2", now=NOW + 149) == Held(mine)


def test_the_owner_of_a_lost_reply_learns_that_it_holds_the_lease(store: Store) -> None:
    created(store)
    mine = owned(store)
    assert acquire(store) == Acquired(mine)


def test_an_expired_lease_is_taken_over(store: Store) -> None:
    created(store)
    mine = owned(store)
    theirs = owned(store, owner="owner-2", now=NOW + 150, lease_until=NOW + 300)
    assert theirs.epoch == mine.epoch + 1
    assert theirs.taken_over


@pytest.mark.parametrize("due_is_near", [True, False])
@pytest.mark.parametrize(
    ("due_at", "kept"),
    [(None, False), (NOW - 9, True), (NOW + 30, True), (NOW + HOUR, True), (NOW + HOUR + 1, False)],
)
def test_a_due_time_within_the_hour_stands_whatever_the_guess(
    store: Store, due_at: float | None, kept: bool, due_is_near: bool
) -> None:
    created(store, due_at=due_at)
    mine = owned(store, due_is_near=due_is_near)
    assert mine.due_at == (due_at if kept else NOW + 150)


def test_an_ended_run_is_not_runnable(store: Store) -> None:
    created(store)
    settle(store, owned(store), "completed")
    assert acquire(store, owner="owner-2") == NotRunnable(read(store))


def test_a_blocked_run_is_runnable_under_other_code_only(store: Store) -> None:
    created(store)
    settle(store, owned(store), "blocked", code_version="v1")
    assert acquire(store, owner="owner-2") == NotRunnable(read(store))
    assert isinstance(acquire(store, owner="owner-2", code_version="v2"), Acquired)


def test_a_blocked_run_that_other_code_holds_is_held(store: Store) -> None:
    created(store)
    settle(store, owned(store), "blocked", code_version="v1")
    theirs = owned(store, owner="owner-2", code_version="v2")
    assert acquire(store, owner="owner-3", code_version="v1") == Held(theirs)


def test_a_wake_is_announced_to_a_live_holder_only(store: Store) -> None:
    created(store)
    assert not store.announce("run-1", now=NOW)
    owned(store)
    assert store.announce("run-1", now=NOW + 149)
    assert read(store).wakes == 1
    assert not store.announce("run-1", now=NOW + 150)
    assert not store.announce("nobody", now=NOW)
    assert store.get("nobody") is None


def test_a_settle_that_missed_a_wake_is_told_the_new_count_and_changes_nothing(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.announce("run-1", now=NOW)
    store.announce("run-1", now=NOW)
    before = read(store)
    assert settle(store, mine) == WakesMoved(2, before)
    assert read(store) == before
    assert store.settle("run-1", epoch=mine.epoch, wakes=2, settlement=settlement()) == Settled()


def test_a_settle_without_a_count_ignores_wakes(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.announce("run-1", now=NOW)
    assert store.settle("run-1", epoch=mine.epoch, wakes=None, settlement=settlement(due_at=NOW)) == Settled()


def test_a_settle_writes_everything_and_frees_the_lease(store: Store) -> None:
    created(store, tags=("shop",))
    mine = owned(store)
    fields: dict[str, Any] = {
        "due_at": NOW + 60, "armed": NOW + 60, "waiting_for": ("signal:approve", "*"), "reason": "waits",
        "waits": (Wait(digest="d1", deadline=NOW + 60), Wait(digest="d2", deadline=None)), "waits_digest": "more",
        "code_version": "v1", "python": "3.13", "undelivered": 2,
    }  # fmt: skip
    assert settle(store, mine, **fields) == Settled()
    run = read(store)
    assert {name: getattr(run, name) for name in fields} == fields
    assert (run.status, run.started_at, run.updated_at, run.finished_at) == ("suspended", NOW + 1, NOW + 2, None)
    assert (run.lease_owner, run.lease_until, run.clean_epoch) == (None, None, mine.epoch)
    assert (run.tags, run.workflow, run.created_at) == (("shop",), "fulfil", NOW)


def test_the_next_settle_removes_what_it_does_not_name(store: Store) -> None:
    created(store)
    settle(store, owned(store), due_at=NOW + 60, armed=NOW + 60, waiting_for=("*",), reason="waits", undelivered=1)
    mine = owned(store, owner="owner-2")
    assert not mine.taken_over
    settle(store, mine, "completed", output='"done"')
    run = read(store)
    assert (run.due_at, run.armed, run.waiting_for, run.reason, run.undelivered) == (None, None, (), None, 0)
    assert (run.status, run.output, run.finished_at) == ("completed", '"done"', NOW + 2)


def test_an_error_is_kept_with_its_cause_and_data(store: Store) -> None:
    created(store)
    cause = ErrorInfo(type="KeyError", message="'x'")
    error = ErrorInfo(type="Declined", message="no " * 3000, module="shop", data={"code": [1, None, "ü"]}, cause=cause)
    settle(store, owned(store), "failed", error=error)
    assert read(store).error == error


def test_a_repeated_settle_after_a_lost_reply_is_recognised(store: Store) -> None:
    created(store)
    mine = owned(store)
    assert settle(store, mine, due_at=NOW + 60) == Settled()
    assert settle(store, mine, due_at=NOW + 60) == Settled()


def test_a_late_settle_does_not_undo_an_unblocking(store: Store) -> None:
    created(store)
    mine = owned(store)
    settle(store, mine, "blocked", code_version="v1")
    store.unblock("run-1", now=NOW + 5)
    assert settle(store, mine, "blocked", code_version="v1") == Settled()
    assert read(store).status == "suspended"


def test_a_fenced_turn_can_neither_settle_nor_fence_nor_release(store: Store) -> None:
    created(store)
    zombie = owned(store)
    owner = owned(store, owner="owner-2", now=NOW + 200, lease_until=NOW + 400)
    with pytest.raises(Fenced):
        settle(store, zombie, "completed")
    with pytest.raises(Fenced):
        store.record_fences("run-1", epoch=zombie.epoch, fences={1: 1})
    store.release("run-1", epoch=zombie.epoch, now=NOW + 201)
    assert read(store) == owner


def test_nobody_settles_a_run_that_is_missing(store: Store) -> None:
    with pytest.raises(Fenced):
        store.settle("nobody", epoch=1, wakes=0, settlement=settlement())
    assert store.get("nobody") is None


def test_fences_are_replaced(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.record_fences("run-1", epoch=mine.epoch, fences={1: 4, 2: 0})
    store.record_fences("run-1", epoch=mine.epoch, fences={2: 0, 3: 7})
    assert read(store).fences == {2: 0, 3: 7}


def test_a_released_run_is_due_now_and_taken_over_next(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.release("run-1", epoch=mine.epoch, now=NOW + 3)
    run = read(store)
    assert (run.lease_owner, run.lease_until, run.due_at, run.clean_epoch) == (None, None, NOW + 3, mine.clean_epoch)
    assert run.released_epoch == mine.epoch
    taken = owned(store, owner="owner-2")
    assert (taken.taken_over, taken.died) == (True, False)


def test_a_release_after_the_settle_changes_nothing(store: Store) -> None:
    created(store)
    mine = owned(store)
    settle(store, mine, due_at=NOW + 60)
    store.release("run-1", epoch=mine.epoch, now=NOW + 3)
    assert read(store).due_at == NOW + 60


def test_a_turn_that_gave_its_lease_back_cannot_settle(store: Store) -> None:
    created(store)
    mine = owned(store)
    store.release("run-1", epoch=mine.epoch, now=NOW + 3)
    with pytest.raises(Fenced):
        settle(store, mine)


def test_terminating_ends_the_run_and_fences_its_holder(store: Store) -> None:
    created(store)
    mine = owned(store)
    run = store.terminate("run-1", now=NOW + 5, reason="asked to")
    assert run is not None
    assert (run.status, run.reason, run.finished_at) == ("cancelled", "asked to", NOW + 5)
    assert (run.outbox, run.due_at) == ("terminate", NOW + 5), "others have yet to be told"
    assert (run.epoch, run.lease_owner) == (mine.epoch + 1, None)
    with pytest.raises(Fenced):
        settle(store, mine, "completed")
    assert acquire(store, owner="owner-2") == NotRunnable(run)


def test_an_ended_run_is_not_terminated_again(store: Store) -> None:
    created(store)
    settle(store, owned(store), "completed")
    before = read(store)
    assert store.terminate("run-1", now=NOW + 9, reason="too late") == before
    assert read(store) == before


def test_a_missing_run_is_neither_terminated_nor_unblocked(store: Store) -> None:
    assert store.terminate("nobody", now=NOW, reason="") is None
    assert store.unblock("nobody", now=NOW) is None
    assert store.get("nobody") is None


def test_unblocking_makes_a_run_due_under_the_same_code(store: Store) -> None:
    created(store)
    settle(store, owned(store), "blocked", code_version="v1", reason="diverged")
    run = store.unblock("run-1", now=NOW + 5)
    assert run is not None
    assert (run.status, run.due_at, run.reason) == ("suspended", NOW + 5, None)
    assert isinstance(acquire(store, owner="owner-2"), Acquired)


def test_unblocking_leaves_other_runs_alone(store: Store) -> None:
    run = created(store)
    assert store.unblock("run-1", now=NOW + 5) == run
    assert read(store) == run


def test_an_output_over_the_limit_is_refused_and_the_turn_goes_on(store: Store) -> None:
    created(store)
    mine = owned(store)
    with pytest.raises(LimitExceeded):
        settle(store, mine, "completed", output="x" * 405_000)
    assert read(store) == mine
