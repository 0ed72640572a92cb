"""Ids of the runs of a lineage: numbered, never too long, and not for callers to choose."""

import pytest

from durable.errors import InvalidName
from durable.model.ids import check_new_run_id, check_run_id, generation_id, generation_of
from durable.model.limits import RUN_ID_BYTES


@pytest.mark.parametrize("lineage", ["r", "order.7@x", "x" * 125, "x" * 128, "child.pay~r17"])
@pytest.mark.parametrize("number", [2, 10, 123_456])
def test_an_id_tells_its_number_and_is_a_run_id(lineage: str, number: int) -> None:
    run_id = generation_id(lineage, number)
    assert check_run_id(run_id) == run_id
    assert len(run_id) <= RUN_ID_BYTES
    assert generation_of(run_id, lineage) == number


def test_long_lineages_do_not_share_ids() -> None:
    assert generation_id("x" * 127 + "a", 2) != generation_id("x" * 127 + "b", 2)


@pytest.mark.parametrize("first", ["r", "child.pay~r17", "r~7"])
def test_the_first_run_has_the_number_1_whatever_its_id(first: str) -> None:
    assert generation_of(first, None) == 1


def test_callers_cannot_choose_an_id_of_a_lineage() -> None:
    with pytest.raises(InvalidName, match="~"):
        check_new_run_id("r~2")
