"""Filters of listings: what the table is asked to leave out, and what is left out here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from durable.adapters.dynamodb import attributes as a

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.model.run import Status
    from durable.ports import Condition


@dataclass(frozen=True, slots=True)
class Filter:
    """What rows must meet.

    Attributes are compared here: a row costs the same to read whoever drops it, and so every operator means on the table
    what it means in memory, for absent values and for values of another type too.
    """

    expression: str = ""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: Sequence[Condition] = ()

    def __bool__(self) -> bool:
        return bool(self.expression or self.where)

    def arguments(self) -> dict[str, str]:
        """What a query is given, beside names and values."""
        return {"FilterExpression": self.expression} if self.expression else {}

    def keeps(self, row: Mapping[str, Any]) -> bool:
        """Whether a row that the table has sent is wanted."""
        if not self.where:
            return True
        attributes = a.read_search_attributes(row["attributes"]) if "attributes" in row else {}
        return all(condition.holds(attributes) for condition in self.where)


def filtered(outcome: Status | Literal["open"] | None, tag: str | None, where: Sequence[Condition]) -> Filter:
    """The filter that all of these make together."""
    expressions: list[str] = []
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    if outcome is not None:
        names["#outcome"] = "outcome"
        if outcome == "open":
            expressions.append("attribute_not_exists(#outcome)")
        else:
            expressions.append("#outcome = :outcome")
            values[":outcome"] = a.text(outcome)
    if tag is not None:
        expressions.append("contains(#tags, :tag)")
        names["#tags"] = "tags"
        values[":tag"] = a.text(tag)
    return Filter(" AND ".join(expressions), names, values, where)
