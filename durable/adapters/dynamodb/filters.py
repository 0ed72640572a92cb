"""Filters of listings, as the table's expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from durable.adapters.dynamodb import attributes as a

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.attributes import Operator
    from durable.model.run import Status
    from durable.ports import Condition

_OPERATORS: Final[dict[Operator, str]] = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True, slots=True)
class Filter:
    """An expression with what it names."""

    expression: str
    names: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, Any] = field(default_factory=dict[str, Any])


def filtered(outcome: Status | Literal["open"] | None, tag: str | None, where: Sequence[Condition]) -> Filter | None:
    """The filter that all of these make together; None if there are none."""
    filters = [_attribute(number, condition) for number, condition in enumerate(where)]
    if tag is not None:
        filters.append(Filter("contains(#tags, :tag)", {"#tags": "tags"}, {":tag": a.text(tag)}))
    if outcome is not None:
        filters.append(_outcome(outcome))
    if not filters:
        return None
    return Filter(
        " AND ".join(part.expression for part in filters),
        {placeholder: name for part in filters for placeholder, name in part.names.items()},
        {placeholder: value for part in filters for placeholder, value in part.values.items()},
    )


def _outcome(outcome: Status | Literal["open"]) -> Filter:
    names = {"#outcome": "outcome"}
    if outcome == "open":
        return Filter("attribute_not_exists(#outcome)", names)
    return Filter("#outcome = :outcome", names, {":outcome": a.text(outcome)})


def _attribute(number: int, condition: Condition) -> Filter:
    """DynamoDB takes what is absent for different from every value; a condition does not."""
    path = f"#attributes.#where{number}"
    expression = f"{path} {_OPERATORS[condition.op]} :where{number}"
    if condition.op == "!=":
        expression = f"attribute_exists({path}) AND {expression}"
    return Filter(
        expression,
        {"#attributes": "attributes", f"#where{number}": condition.name},
        {f":where{number}": a.search_attribute(condition.value)},
    )
