"""How units are counted."""

import pytest

from durable.adapters.dynamodb.capacity import item_bytes, read_units, value_bytes, write_units


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "aé"}, 3),
        ({"B": b"abcd"}, 4),
        ({"BOOL": True}, 1),
        ({"N": "1796000000.25"}, 7),
        ({"N": "-5"}, 3),
        ({"L": [{"S": "ab"}, {"S": "c"}]}, 3 + 3 + 2),
        ({"M": {"ab": {"N": "7"}}}, 3 + 1 + 2 + 2),
    ],
)
def test_the_size_of_values(value: dict[str, object], size: int) -> None:
    assert value_bytes(value) == size


def test_names_of_attributes_count() -> None:
    assert item_bytes({"pk": {"S": "abc"}, "é": {"S": ""}}) == 2 + 3 + 2


@pytest.mark.parametrize(("sizes", "units"), [((), 1), ((1,), 1), ((1024,), 1), ((1025,), 2), ((10, 5000), 5)])
def test_writes_are_paid_by_the_kilobyte(sizes: tuple[int, ...], units: int) -> None:
    assert write_units(*sizes) == units


@pytest.mark.parametrize(
    ("size", "consistent", "units"), [(0, True, 1), (4096, True, 1), (4097, True, 2), (9000, False, 1.5)]
)
def test_reads_are_paid_by_four_kilobytes(size: int, consistent: bool, units: float) -> None:
    assert read_units(size, consistent=consistent) == units
