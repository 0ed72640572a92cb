"""Which items count: above fences, inside cuts and before the run's birth they do not."""

import pytest

from durable.model.entry import Entry
from durable.model.history import counting_entries, gap_free_prefix
from durable.model.run import Cut, Run


def a_run(**facts: object) -> Run:
    usual = {
        "id": "r", "workflow": "w", "version": "1", "status": "suspended", "created_at": 0.0, "epoch": 30, "born": 10,
        "clean_epoch": 29, "writer": "t",
    }  # fmt: skip
    return Run(**(usual | facts))  # type: ignore[arg-type]


def counting(run: Run, *orders: tuple[int, int]) -> list[tuple[int, int]]:
    items = [Entry(location=f"s{n}", kind="step", epoch=epoch, n=n, at=0.0) for epoch, n in orders]
    return [entry.order for entry in counting_entries(run, items)]


def test_what_an_earlier_run_of_the_id_left_does_not_count() -> None:
    assert counting(a_run(), (9, 1), (10, 1), (11, 1)) == [(10, 1), (11, 1)]


def test_what_lies_above_its_epochs_fence_does_not_count() -> None:
    assert counting(a_run(fences={11: 2, 12: 0}), (11, 2), (11, 3), (12, 1), (13, 9)) == [(11, 2), (13, 9)]


def test_a_cut_takes_back_the_rest_of_its_epoch_and_the_epochs_up_to_its_end() -> None:
    run = a_run(cuts=(Cut(12, 3, 15),))
    orders = [(11, 9), (12, 2), (12, 3), (12, 4), (13, 1), (15, 99), (16, 1)]
    assert counting(run, *orders) == [(11, 9), (12, 2), (16, 1)]


def test_each_cut_counts_for_itself() -> None:
    run = a_run(cuts=(Cut(12, 3, 12), Cut(20, 1, 21)))
    assert counting(run, (12, 3), (13, 1), (20, 1), (21, 5), (22, 1)) == [(13, 1), (22, 1)]


@pytest.mark.parametrize(
    ("numbers", "floor", "prefix"),
    [(set(), 0, 0), ({1, 2, 4}, 0, 2), ({2, 3}, 0, 0), (set(), 7, 7), ({8, 9, 11}, 7, 9), ({1, 2, 9}, 7, 7)],
)
def test_the_prefix_ends_at_the_first_gap_above_the_floor(numbers: set[int], floor: int, prefix: int) -> None:
    assert gap_free_prefix(numbers, floor=floor) == prefix
