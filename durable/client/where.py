"""Filters on search attributes: `amount >= 100 and region == 'eu'`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

from durable.errors import InvalidInput
from durable.model.attributes import LARGEST_NUMBER, AttributeValue, Operator
from durable.ports import Condition

Where: TypeAlias = str | Sequence[Condition]
"""A text, or the conditions that it would stand for: all of them must hold."""

MOST: Final = 20
"""Conditions of one filter: DynamoDB limits the length of an expression."""
_CONDITION: Final = re.compile(
    r"""\s*(?P<name>[^\W\d]\w*)\s*(?P<op>==|!=|<=|>=|<|>)\s*
        (?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|True|False)\s*""",
    re.VERBOSE,
)
_AND: Final = re.compile(r"and\b", re.IGNORECASE)


def conditions(where: Where | None) -> tuple[Condition, ...]:
    """The conditions of a filter.

    Raises:
        InvalidInput: The text is not understood; the message shows from where on.
    """
    if where is None:
        return ()
    if not isinstance(where, str):
        return tuple(where)
    found: list[Condition] = []
    place = 0
    while len(found) < MOST:
        match = _CONDITION.match(where, place)
        if match is None:
            raise _not_understood(where, place)
        found.append(_condition(match))
        place = match.end()
        if place == len(where):
            return tuple(found)
        conjunction = _AND.match(where, place)
        if conjunction is None:
            raise _not_understood(where, place)
        place = conjunction.end()
    raise InvalidInput("the filter", f"it has more than {MOST} conditions")


def _condition(match: re.Match[str]) -> Condition:
    return Condition(match["name"], cast("Operator", match["op"]), _value(match["value"]))


def _value(text: str) -> AttributeValue:
    if text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    number = float(text)
    if not abs(number) < LARGEST_NUMBER:
        raise InvalidInput("the filter", f"{text[:20]} is too large: numbers are below 10^37")
    return number if re.search(r"[.eE]", text) else int(text)


def _not_understood(where: str, place: int) -> InvalidInput:
    rest = where[place:].strip()
    shown = f"at {rest[:40]!r}" if rest else "at its end"
    return InvalidInput(
        "the filter",
        f"it is not understood {shown}: write conditions such as amount >= 100 and region == 'eu' "
        "(== != < <= > >=; texts in quotes, numbers, true, false; joined by and)",
    )
