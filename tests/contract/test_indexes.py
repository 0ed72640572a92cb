"""What can be found without an id: a workflow's runs, due runs, runs that need somebody."""

from dataclasses import replace

import pytest

from durable.errors import InvalidName
from durable.model.run import Run
from durable.ports import Condition, RunSummary, Store
from tests.contract.builders import NOW, acquire, created, owned, settle


def listed(store: Store, workflow: str = "fulfil", limit: int = 50, **arguments: object) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = store.list_runs(workflow, limit=limit, cursor=cursor, **arguments)  # type: ignore[arg-type]
        assert len(page.runs) <= limit
        found += [run.id for run in page.runs]
        cursor = page.cursor
        if cursor is None:
            return found


def several(store: Store, count: int = 11) -> list[Run]:
    """More than one run at some moments, spread over the shards."""
    return [created(store, f"run-{n}", created_at=NOW + n // 2) for n in range(count)]


def due(store: Store, before: float) -> list[str]:
    return list(store.due_runs(before=before, limit=100))


def test_runs_are_listed_newest_first(store: Store) -> None:
    runs = several(store)
    expected = sorted(runs, key=lambda run: (run.created_at, run.id), reverse=True)
    assert listed(store) == [run.id for run in expected]


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 11, 12])
def test_pages_of_a_listing_leave_nothing_out_and_repeat_nothing(store: Store, limit: int) -> None:
    several(store)
    assert listed(store, limit=limit) == listed(store)


def test_a_summary_tells_what_the_index_has(store: Store) -> None:
    created(store, tags=("shop", "eu"))
    open_run = RunSummary(id="run-1", workflow="fulfil", created_at=NOW, outcome=None, tags=("shop", "eu"))
    assert store.list_runs("fulfil").runs == [open_run]
    settle(store, owned(store), "completed")
    assert store.list_runs("fulfil").runs == [replace(open_run, outcome="completed")]


def test_workflows_are_listed_apart(store: Store) -> None:
    created(store, "a", workflow="fulfil")
    created(store, "b", workflow="fulfil#0")
    created(store, "c", workflow="ful")
    assert [listed(store, name) for name in ("fulfil", "fulfil#0", "ful", "none")] == [["a"], ["b"], ["c"], []]


def test_runs_are_filtered_by_outcome(store: Store) -> None:
    several(store, 7)
    settle(store, owned(store, "run-1"), "completed")
    settle(store, owned(store, "run-2"), "failed")
    settle(store, owned(store, "run-3"), "blocked")
    store.terminate("run-4", now=NOW, reason="")
    assert listed(store, outcome="completed") == ["run-1"]
    assert listed(store, outcome="failed") == ["run-2"]
    assert listed(store, outcome="cancelled") == ["run-4"]
    assert sorted(listed(store, outcome="open", limit=2)) == ["run-0", "run-3", "run-5", "run-6"]


def test_due_runs_come_longest_overdue_first(store: Store) -> None:
    created(store, "late", due_at=NOW - 5)
    created(store, "now", due_at=NOW)
    created(store, "soon", due_at=NOW + 0.5)
    created(store, "never", due_at=None)
    assert due(store, NOW) == ["late", "now"]
    assert store.due_runs(before=NOW + 9, limit=2) == ["late", "now"]


def test_a_run_is_due_where_its_record_says_so(store: Store) -> None:
    created(store, due_at=None)
    assert due(store, NOW + 1e6) == []
    mine = owned(store)
    assert due(store, NOW + 150) == ["run-1"]
    settle(store, mine, due_at=NOW + 5000)
    assert due(store, NOW + 4999) == []
    assert due(store, NOW + 5000) == ["run-1"]
    mine = owned(store, owner="owner-2")
    assert due(store, NOW + 150) == ["run-1"]
    store.release("run-1", epoch=mine.epoch, now=NOW + 1)
    assert due(store, NOW + 1) == ["run-1"]
    settle(store, owned(store, owner="owner-3"), "completed")
    assert due(store, NOW + 1e6) == []


def test_a_refused_acquire_leaves_the_indexes_alone(store: Store) -> None:
    created(store)
    settle(store, owned(store), "blocked", code_version="v1")
    acquire(store, owner="owner-2")
    assert due(store, NOW + 1e6) == []


def test_runs_that_need_somebody_are_found_by_status(store: Store) -> None:
    several(store, 6)
    settle(store, owned(store, "run-1"), "failed")
    settle(store, owned(store, "run-2"), "blocked", code_version="v1")
    settle(store, owned(store, "run-3"), "blocked", code_version="v1")
    settle(store, owned(store, "run-4"), "dead")
    settle(store, owned(store, "run-5"), "completed")

    def found(status: object) -> list[str]:
        return [run.id for run in store.runs_needing_attention(status, limit=9).runs]  # type: ignore[arg-type]

    assert (found("failed"), found("blocked"), found("dead")) == (["run-1"], ["run-3", "run-2"], ["run-4"])
    assert (found("completed"), found("suspended")) == ([], [])


def test_runs_that_need_somebody_come_in_pages(store: Store) -> None:
    for n in range(5):
        created(store, f"run-{n}", created_at=NOW + n)
        settle(store, owned(store, f"run-{n}"), "failed")
    first = store.runs_needing_attention("failed", limit=3)
    second = store.runs_needing_attention("failed", limit=3, cursor=first.cursor)
    assert [run.id for run in (*first.runs, *second.runs)] == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert second.cursor is None


def test_a_run_that_goes_on_needs_nobody_any_more(store: Store) -> None:
    created(store, "unblocked")
    created(store, "redeployed")
    created(store, "ended")
    for run_id in ("unblocked", "redeployed", "ended"):
        settle(store, owned(store, run_id), "blocked", code_version="v1")
    store.unblock("unblocked", now=NOW)
    settle(store, owned(store, "redeployed", owner="owner-2", code_version="v2"))
    store.terminate("ended", now=NOW, reason="")
    assert store.runs_needing_attention("blocked", limit=9).runs == []


PAYMENTS = {
    "run-0": {"cents": 5, "who": "anna", "paid": True},
    "run-1": {"cents": 40.5, "who": "bert", "paid": False},
    "run-2": {"cents": 300, "who": "Anna"},
    "run-3": {"cents": "300"},
    "run-4": {},
}


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ([("cents", "==", 300)], [2]),
        ([("cents", "==", 300.0)], [2]),
        ([("cents", "!=", 300)], [0, 1, 3]),
        ([("cents", "<", 300)], [0, 1]),
        ([("cents", "<=", 40.5)], [0, 1]),
        ([("cents", ">", 5)], [1, 2]),
        ([("cents", ">=", 5), ("cents", "<", 300)], [0, 1]),
        ([("who", ">", "anna")], [1]),
        ([("who", "!=", "anna")], [1, 2]),
        ([("paid", "==", True)], [0]),
        ([("paid", "!=", True)], [1]),
        ([("cents", "==", "300")], [3]),
        ([("paid", "==", 1)], []),
        ([("missing", "!=", 1)], []),
        ([("cents", ">", 0), ("who", "==", "bert")], [1]),
    ],
)
def test_runs_are_filtered_by_attributes(store: Store, where: list[tuple[str, str, object]], found: list[int]) -> None:
    for run_id, attributes in PAYMENTS.items():
        created(store, run_id, attributes=attributes)
    conditions = [Condition(*condition) for condition in where]  # type: ignore[arg-type]
    assert sorted(listed(store, where=conditions)) == [f"run-{n}" for n in found]
    assert sorted(listed(store, where=conditions, limit=1)) == [f"run-{n}" for n in found]


def test_attributes_may_have_odd_names(store: Store) -> None:
    attributes = {"a.b": 1, "size": 2, "größe [cm]": 3, "#x": 4, ":y": 5}
    run = created(store, attributes=attributes)
    assert store.list_runs("fulfil").runs[0].attributes == attributes
    assert store.get("run-1") == run
    assert listed(store, where=[Condition(name, "==", value) for name, value in attributes.items()]) == ["run-1"]


def test_every_filter_must_be_met(store: Store) -> None:
    created(store, "a", tags=("shop", "eu"), attributes={"n": 1})
    created(store, "b", tags=("shop",), attributes={"n": 1})
    created(store, "c", tags=("shop", "eu"), attributes={"n": 2})
    settle(store, owned(store, "c"), "completed")
    one = Condition("n", "==", 1)
    assert listed(store, tag="shop", limit=2) == ["c", "b", "a"]
    assert (listed(store, tag="eu"), listed(store, tag="sho")) == (["c", "a"], [])
    assert listed(store, tag="eu", where=[one]) == ["a"]
    assert listed(store, tag="eu", outcome="completed") == ["c"]
    assert listed(store, tag="eu", outcome="open", where=[one]) == ["a"]
    assert listed(store, tag="eu", outcome="completed", where=[one]) == []


def test_true_and_false_have_no_order() -> None:
    with pytest.raises(InvalidName):
        Condition("paid", "<", value=True)


def test_a_summary_tells_when_the_run_was_created_to_the_last_bit(store: Store) -> None:
    run = created(store, created_at=1_796_000_000.123_456_7)
    assert store.list_runs("fulfil").runs[0].created_at == run.created_at


def test_runs_blocked_by_other_code_come_oldest_first(store: Store) -> None:
    for n in range(7):
        created(store, f"run-{n}", created_at=NOW + n)
        settle(store, owned(store, f"run-{n}"), "blocked", code_version=f"v{n % 2}" if n < 6 else None)
    created(store, "failed")
    settle(store, owned(store, "failed"), "failed", code_version="v1")

    def blocked(not_under: str, limit: int = 9) -> list[str]:
        return list(store.blocked_runs(not_under=not_under, limit=limit))

    assert blocked("v0") == ["run-1", "run-3", "run-5", "run-6"]
    assert blocked("v1", limit=2) == ["run-0", "run-2"]
    assert len(blocked("v2")) == 7
    mine = owned(store, "run-0", owner="owner-2", code_version="v1")
    settle(store, mine, "blocked", code_version="v1")
    store.unblock("run-2", now=NOW)
    assert blocked("v1") == ["run-4", "run-6"]
