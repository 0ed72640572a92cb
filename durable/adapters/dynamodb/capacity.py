"""How DynamoDB counts the bytes of an item and the units of a request."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITE_UNIT: Final = 1024
READ_UNIT: Final = 4096
_CONTAINER = 3
_MEMBER = 1


def item_bytes(item: Mapping[str, Any]) -> int:
    """Size of an item, names of attributes included (DynamoDB developer guide, "Item sizes and formats")."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def value_bytes(value: Mapping[str, Any]) -> int:
    """Size of an attribute value. Numbers take about a byte for two significant digits, and one more."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            digits = content.lstrip("-").replace(".", "").strip("0")
            return ceil(len(digits) / 2) + 1 + content.startswith("-")
        case "L":
            return _CONTAINER + sum(_MEMBER + value_bytes(member) for member in content)
        case "M":
            return _CONTAINER + sum(_MEMBER + len(name.encode()) + value_bytes(it) for name, it in content.items())
        case _:
            return 1


def write_units(*sizes: int) -> int:
    """Units of a write that turns an item of one size into one of another."""
    return max(1, ceil(max(sizes, default=0) / WRITE_UNIT))


def read_units(size: int, *, consistent: bool) -> float:
    """Units of a read of so many bytes."""
    return max(1, ceil(size / READ_UNIT)) * (1.0 if consistent else 0.5)
