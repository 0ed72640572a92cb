"""Condition and update expressions of DynamoDB over plain rows, as far as tests of workflows need them.

Conditions: comparisons, `BETWEEN`, `IN`, `attribute_exists`, `attribute_not_exists`, `begins_with`, `contains`, `size`,
`AND`, `OR`, `NOT`, parentheses. Updates: `SET` (with `+`, `-`, `if_not_exists`), `REMOVE`, `ADD`. Paths are names of
attributes at the top.
"""

from __future__ import annotations

import operator
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TOKEN: Final = re.compile(r"\s*(<=|>=|<>|[-+=<>(),]|[#:]?\w+)")
_ABSENT: Final = object()
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_CLAUSES: Final = frozenset({"SET", "REMOVE", "ADD"})


class ExpressionFault(Exception):
    """An expression that does not hold, cannot be read, or does not fit the row."""


def holds(expression: str, row: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether the condition holds for the row; `{}` is the row that is not there."""
    reader = _Reader(expression, row, arguments)
    answer = reader.either()
    reader.end()
    return answer


def updated(expression: str, row: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The row after the update."""
    reader = _Reader(expression, row, arguments)
    changed = deepcopy(dict(row))
    while reader.peek() is not None:
        match clause := reader.take().upper():
            case "SET":
                reader.each(lambda: changed.update([reader.assignment()]))
            case "REMOVE":
                reader.each(lambda: changed.pop(reader.name(), None))
            case "ADD":
                reader.each(lambda: changed.update([reader.addition()]))
            case _:
                reader.unknown(clause)
    return changed


def _union(left: set[Any], right: set[Any]) -> set[Any]:
    return left | right


class _Reader:
    """Reads an expression from left to right and works it out on the way."""

    def __init__(self, expression: str, row: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        self._expression = expression
        self._tokens = _TOKEN.findall(expression)
        if "".join(self._tokens) != re.sub(r"\s", "", expression):
            raise ExpressionFault(f"the store in memory cannot read the expression {expression!r}")
        self._row = row
        self._names: Mapping[str, str] = arguments.get("ExpressionAttributeNames") or {}
        self._values: Mapping[str, Any] = arguments.get("ExpressionAttributeValues") or {}
        self._at = 0

    def peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if token is None or (wanted is not None and token.upper() != wanted):
            self.unknown(token)
        self._at += 1
        return str(token)

    def end(self) -> None:
        if self.peek() is not None:
            self.unknown(self.peek())

    def unknown(self, token: str | None) -> None:
        raise ExpressionFault(f"the store in memory cannot read the expression {self._expression!r} at {token!r}")

    def either(self) -> bool:
        answer = self.both()
        while self._next_is("OR"):
            answer = self.both() or answer
        return answer

    def both(self) -> bool:
        answer = self.one()
        while self._next_is("AND"):
            answer = self.one() and answer
        return answer

    def one(self) -> bool:
        if self._next_is("NOT"):
            return not self.one()
        if self._next_is("("):
            answer = self.either()
            self.take(")")
            return answer
        match self.peek():
            case "attribute_exists" | "attribute_not_exists" as function:
                self.take()
                (there,) = self._arguments(1)
                return (there is not _ABSENT) == (function == "attribute_exists")
            case "begins_with" | "contains" as function:
                self.take()
                whole, part = self._arguments(2)
                if whole is _ABSENT:
                    return False
                return str(whole).startswith(str(part)) if function == "begins_with" else part in whole
            case _:
                return self._comparison()

    def each(self, read: Callable[[], object]) -> None:
        read()
        while self._next_is(","):
            read()

    def name(self) -> str:
        token = self.take()
        if token.startswith("#"):
            if token not in self._names:
                raise ExpressionFault(f"{token} is not in ExpressionAttributeNames")
            return self._names[token]
        return token

    def assignment(self) -> tuple[str, Any]:
        name = self.name()
        self.take("=")
        value = self._operand()
        while self.peek() in {"+", "-"}:
            sign = self.take()
            value = self._sum(value, self._operand(), operator.add if sign == "+" else operator.sub)
        if value is _ABSENT:
            raise ExpressionFault(f"{self._expression!r} sets {name} from an attribute that is not there")
        return name, value

    def addition(self) -> tuple[str, Any]:
        name = self.name()
        value = self._operand()
        old = self._row.get(name, _ABSENT)
        if old is _ABSENT:
            return name, value
        return name, self._sum(old, value, _union if isinstance(old, set) else operator.add)

    def _comparison(self) -> bool:
        left = self._operand()
        match word := self.take().upper():
            case "BETWEEN":
                low = self._operand()
                self.take("AND")
                high = self._operand()
                return left is not _ABSENT and low <= left <= high
            case "IN":
                self.take("(")
                choices: list[Any] = []
                self.each(lambda: choices.append(self._operand()))
                self.take(")")
                return left in choices
            case _ if word in _COMPARISONS:
                right = self._operand()
                if left is _ABSENT or right is _ABSENT:
                    return word == "<>"
                return _COMPARISONS[word](left, right)
            case _:
                self.unknown(word)
                return False

    def _operand(self) -> Any:
        match self.peek():
            case "if_not_exists":
                self.take()
                there, otherwise = self._arguments(2)
                return otherwise if there is _ABSENT else there
            case "size":
                self.take()
                (there,) = self._arguments(1)
                return _ABSENT if there is _ABSENT else len(there)
            case str() as token if token.startswith(":"):
                self.take()
                if token not in self._values:
                    raise ExpressionFault(f"{token} is not in ExpressionAttributeValues")
                return deepcopy(self._values[token])
            case _:
                return self._row.get(self.name(), _ABSENT)

    def _arguments(self, number: int) -> list[Any]:
        found: list[Any] = []
        self.take("(")
        self.each(lambda: found.append(self._operand()))
        self.take(")")
        if len(found) != number:
            self.unknown(")")
        return found

    def _sum(self, left: Any, right: Any, combine: Callable[[Any, Any], Any]) -> Any:
        try:
            return combine(left, right)
        except TypeError as problem:
            raise ExpressionFault(f"{self._expression!r} does not fit the row: {problem}") from None

    def _next_is(self, word: str) -> bool:
        token = self.peek()
        if token is None or token.upper() != word:
            return False
        self._at += 1
        return True
