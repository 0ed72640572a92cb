"""Filters on attributes as text."""

import pytest

from durable import Condition, InvalidInput, InvalidName
from durable.client.where import conditions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a == 1", [("a", "==", 1)]),
        ("  a>=-2.5e3AND b != 'x'", [("a", ">=", -2500.0), ("b", "!=", "x")]),
        ("region == 'o\\'hara and co' and x < +7", [("region", "==", "o'hara and co"), ("x", "<", 7)]),
        ('name == "a \\"b\\""', [("name", "==", 'a "b"')]),
        ("open == true and shut == False", [("open", "==", True), ("shut", "==", False)]),
        ("größe <= 007", [("größe", "<=", 7)]),
    ],
)
def test_a_text_is_read_as_its_conditions(text: str, expected: list[tuple[str, str, object]]) -> None:
    found = conditions(text)
    assert [(one.name, one.op, one.value) for one in found] == expected
    assert [type(one.value) for one in found] == [type(value) for _, _, value in expected]


def test_conditions_and_nothing_are_taken_as_they_are() -> None:
    wanted = [Condition("a", "<", 3)]
    assert conditions(wanted) == tuple(wanted)
    assert conditions(None) == ()


@pytest.mark.parametrize("text", ["", "a", "a ==", "a == b", "== 3", "a == 1 and", "a == 1 b == 2", "a == 'x", "1 < a"])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="the filter"):
        conditions(text)


def test_truth_has_no_order() -> None:
    with pytest.raises(InvalidName, match="no order"):
        conditions("open > false")
