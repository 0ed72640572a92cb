"""Which steps a rollback is about, and how each of them has come out."""

from dataclasses import replace
from typing import Any

from durable.engine.rollback import done_steps, outcome_of
from durable.engine.stopping import never_began, remainder, verdict
from durable.engine.undoing import Undo
from durable.errors import ErrorInfo
from durable.model.entry import Compensation, Entry
from durable.model.packages import Packages
from durable.model.run import Cut, Run

RUN = Run(
    id="r", workflow="w", version="1", status="suspended", created_at=0.0, epoch=9, born=1, clean_epoch=8, writer="x"
)
UNDO = Compensation("m:f", '{"args":[],"kwargs":{}}')


def step(location: str, n: int, *, epoch: int = 2, undo: Compensation | None = UNDO, **facts: Any) -> Entry:
    return Entry(location=location, kind="step", epoch=epoch, n=n, at=0.0, compensation=undo, **facts)


def outcome(location: str, n: int, *, epoch: int = 3, mark: str = "!", **facts: Any) -> Entry:
    return step(location, n, epoch=epoch, undo=None, mark=mark, **facts)


def checkpoint(n: int) -> Entry:
    return Entry(location="c", kind="checkpoint", epoch=2, n=n, at=0.0)


def locations(entries: list[Entry]) -> list[str]:
    return [entry.location for entry in entries]


def test_steps_with_an_undo_the_latest_first() -> None:
    entries = [step("a", 1), step("b", 2, undo=None), step("c", 3), step("d", 1, epoch=3)]
    assert locations(done_steps(RUN, entries, [])) == ["d", "c", "a"]


def test_only_those_since_the_last_checkpoint() -> None:
    entries = [step("a", 1), checkpoint(2), step("b", 3), checkpoint(4), step("c", 5)]
    assert locations(done_steps(RUN, entries, [])) == ["c"]


def test_kept_ones_count_once() -> None:
    kept = [step("loop[0]/a", 1), checkpoint(2), step("loop[1]/a", 3)]
    assert locations(done_steps(RUN, [step("loop[1]/a", 3)], kept)) == ["loop[1]/a"]


def test_kept_ones_that_a_cut_has_taken_back_do_not_count() -> None:
    run = replace(RUN, cuts=(Cut(2, 2, 5),))
    assert locations(done_steps(run, [], [step("a", 1), step("b", 2)])) == ["a"]


def test_an_outcome_belongs_to_the_execution_before_it() -> None:
    first, again = step("a", 1), step("a", 1, epoch=5)
    undone = outcome("a", 1, epoch=3)
    assert outcome_of(first, [first, undone]) is undone
    assert outcome_of(again, [undone, again]) is None
    assert outcome_of(again, [undone, again, outcome("a!", 2), outcome("a", 1, epoch=6, mark="!@1")]) is None


def test_failed_attempts_of_an_earlier_execution_are_not_counted() -> None:
    again = step("a", 1, epoch=5)
    error = ErrorInfo(type="E", message="")
    entries = [
        outcome("a", 1, mark="!@1", attempts=1, error=error),
        again,
        outcome("a", 2, epoch=6, mark="!@2", attempts=2, error=error),
        outcome("a", 1, epoch=6, mark="!@1", attempts=1, error=error),
    ]
    assert [
        entry.attempts for entry in Undo("r", again, UNDO, entries, longest=100, packages=Packages([])).attempts
    ] == [1, 2]


def test_each_execution_of_a_step_is_undone_under_a_key_of_its_own() -> None:
    first, again = step("a", 1), step("a", 1, epoch=5)
    keys = {
        Undo("r", entry, UNDO, [], longest=100, packages=Packages([])).idempotency_key
        for entry in (first, again, first)
    }
    assert len(keys) == 2


def changed(**changes: Any) -> Run:
    return Run(**{name: getattr(RUN, name) for name in Run.__slots__} | changes)


def test_what_stops_a_run() -> None:
    assert verdict(changed(), 100.0) is None
    assert verdict(changed(cancel_requested="graceful"), 100.0) is None
    assert verdict(changed(cancel_requested="compensate", deadline=50.0), 100.0) == "cancelled"
    assert verdict(changed(deadline=100.0), 99.9) is None
    assert verdict(changed(deadline=100.0), 100.0) == "timed_out"


def test_a_run_has_begun_with_its_first_turn() -> None:
    assert never_began(changed(status="pending", epoch=2, clean_epoch=1))
    assert not never_began(changed(status="pending", epoch=3, clean_epoch=1))
    assert not never_began(changed(status="suspended", epoch=2, clean_epoch=1))


def test_the_record_of_a_blocked_run_has_the_rest_of_its_time() -> None:
    assert remainder(changed(deadline=100.0), 70.0) == 30.0
    assert remainder(changed(deadline=100.0), 170.0) == 0.0
    assert remainder(changed(), 70.0) is None
