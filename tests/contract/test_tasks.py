"""What is known of attempts at remote steps while nobody knows their results."""

from dataclasses import replace
from math import ceil

import pytest

from durable.errors import LimitExceeded
from durable.model.limits import PROGRESS_BYTES, TASK_KEPT_SECONDS
from durable.model.task import TaskRow
from durable.ports import Store
from tests.contract.builders import NOW, created

ID = "labels/print:5:1"
LATER = NOW + 9_000.75
BEGUN = TaskRow(run_id="run-1", id=ID, picked_up_at=NOW, worker="w-1", heartbeat_at=NOW, expires_at=LATER)


def begun(store: Store, task_id: str = ID, *, run_id: str = "run-1") -> TaskRow:
    return store.start_task(run_id, task_id, worker="w-1", now=NOW, expires_at=LATER)


def closed(store: Store, reason: str) -> TaskRow:
    return store.close_task("run-1", ID, reason=reason, expires_at=LATER + 3)


def test_nothing_is_known_of_what_nobody_has_picked_up(store: Store) -> None:
    begun(store)
    assert (store.get_task("run-1", "labels/print:5:2"), store.get_task("run-2", ID)) == (None, None)


def test_picking_up_is_a_sign_of_life(store: Store) -> None:
    assert begun(store) == BEGUN
    assert store.get_task("run-1", ID) == BEGUN


def test_of_a_second_delivery_the_first_pickup_stays_and_the_worker_changes(store: Store) -> None:
    begun(store)
    again = store.start_task("run-1", ID, worker="w-2", now=NOW + 60, expires_at=LATER + 60)
    assert again == replace(BEGUN, worker="w-2", heartbeat_at=NOW + 60, expires_at=LATER + 60)


def test_a_heartbeat_tells_progress_or_leaves_it(store: Store) -> None:
    begun(store)
    told = store.beat_task("run-1", ID, now=NOW + 1, progress='{"done": "ü"}')
    assert told == replace(BEGUN, heartbeat_at=NOW + 1, progress='{"done": "ü"}')
    silent = store.beat_task("run-1", ID, now=NOW + 2.5, progress=None)
    assert silent == replace(told, heartbeat_at=NOW + 2.5) == store.get_task("run-1", ID)


def test_what_is_not_picked_up_can_tell_that_it_lives(store: Store) -> None:
    row = store.beat_task("run-1", "approve", now=NOW, progress="1")
    assert row == TaskRow(
        run_id="run-1", id="approve", heartbeat_at=NOW, progress="1", expires_at=ceil(NOW + TASK_KEPT_SECONDS)
    )


def test_what_is_closed_stays_as_it_is(store: Store) -> None:
    begun(store)
    ended = closed(store, "timed out")
    assert ended == replace(BEGUN, closed="timed out", expires_at=LATER + 3)
    assert closed(store, "cancelled") == ended
    assert begun(store) == ended
    assert store.beat_task("run-1", ID, now=NOW + 9, progress="2") == ended
    assert store.get_task("run-1", ID) == ended


def test_what_is_closed_before_it_is_picked_up_is_not_begun(store: Store) -> None:
    ended = closed(store, "cancelled")
    assert ended == TaskRow(run_id="run-1", id=ID, closed="cancelled", expires_at=LATER + 3)
    assert begun(store) == ended


def test_a_time_to_forget_has_whole_seconds(store: Store) -> None:
    row = store.start_task("run-1", ID, worker="w", now=NOW, expires_at=NOW)
    assert row.expires_at == ceil(NOW)


def test_progress_over_the_limit_is_refused(store: Store) -> None:
    begun(store)
    store.beat_task("run-1", ID, now=NOW, progress="1" * PROGRESS_BYTES)
    with pytest.raises(LimitExceeded, match="the progress of"):
        store.beat_task("run-1", ID, now=NOW, progress="ü" * PROGRESS_BYTES)


def test_attempts_go_with_their_run(store: Store) -> None:
    created(store)
    created(store, "run-10")
    for run_id in ("run-1", "run-10"):
        begun(store, run_id=run_id)
    store.delete_run("run-1")
    assert store.get_task("run-1", ID) is None
    assert store.get_task("run-10", ID) == replace(BEGUN, run_id="run-10")
