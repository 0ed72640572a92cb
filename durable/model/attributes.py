"""Search attributes of a run: small typed values that listings can be narrowed by."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from durable.errors import InvalidName, LimitExceeded
from durable.model.ids import check_name
from durable.model.limits import TAG_BYTES, TAGS

AttributeValue: TypeAlias = str | int | float | bool
Attributes: TypeAlias = Mapping[str, AttributeValue]
Operator = Literal["==", "!=", "<", "<=", ">", ">="]

_COMPARISONS: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

LARGEST_NUMBER: Final = 10.0**37
"""DynamoDB's numbers have 38 digits; larger ones would lose their last."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What an attribute must be. A run without the attribute never meets it, whatever the operator.

    Texts, numbers and truth values are never equal to, smaller or larger than one another.
    """

    name: str
    op: Operator
    value: AttributeValue

    def __post_init__(self) -> None:
        check_name("attribute", self.name)
        if isinstance(self.value, bool) and self.op not in {"==", "!="}:
            raise InvalidName("condition", f"{self.name} {self.op} {self.value}", "true and false have no order")

    def holds(self, attributes: Attributes) -> bool:
        """Whether a run with these attributes meets it."""
        if self.name not in attributes:
            return False
        return _compare(attributes[self.name], self.op, self.value)


def check_attributes(attributes: Attributes) -> dict[str, AttributeValue]:
    """A copy of the attributes; refuses too many, too long ones, odd names and numbers that would not be kept."""
    if len(attributes) > TAGS:
        raise LimitExceeded("the list of attributes", len(attributes), TAGS, unit="attributes")
    for name, value in attributes.items():
        check_name("attribute", name)
        if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) < LARGEST_NUMBER):
            raise InvalidName("attribute", name, f"a number below 10^37, not {value}")
    size = sum(len(name.encode()) + len(str(value).encode()) for name, value in attributes.items())
    if size > TAG_BYTES:
        raise LimitExceeded("the text of all attributes", size, TAG_BYTES)
    return dict(attributes)


def _compare(left: AttributeValue, op: Operator, right: AttributeValue) -> bool:
    return _COMPARISONS[op](left, right) if _kind(left) == _kind(right) else op == "!="


def _kind(value: AttributeValue) -> str:
    match value:
        case bool():
            return "truth"
        case str():
            return "text"
        case _:
            return "number"
