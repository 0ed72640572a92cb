"""Whether a value that was read back is the one that was written, all the way down, and where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

Difference: TypeAlias = tuple[str, object, object]
"""A place, what was written there and what was read back."""

_SCALARS: Final = frozenset({str, int, bool, type(None)})
_ABSENT: Final = object()


def same(written: Any, read: Any) -> bool:  # noqa: PLR0911 - one kind of value after another
    """Whether both have the same types and are equal, in every member.

    A whole number where a float is declared is the one difference that is no loss (PEP 484 says so too).
    """
    kind: type[Any] = type(written)  # pyright: ignore[reportUnknownVariableType]
    if kind is not type(read):
        return kind is int and type(read) is float and written == read
    if kind in _SCALARS:
        return written == read
    if kind is dict:
        return _same_items(written, read)
    if kind is list or issubclass(kind, tuple):
        return len(written) == len(read) and all(map(same, written, read))
    names = _member_names(kind)
    if names is None:
        return _equal(written, read)
    for name in names:
        if not same(getattr(written, name, _ABSENT), getattr(read, name, _ABSENT)):
            return False
    return not isinstance(written, BaseModel) or _same_hidden(written, read)


def first_difference(written: Any, read: Any, place: str = "") -> Difference:
    """The innermost place where the two differ; they do differ."""
    if type(written) is type(read):
        others = dict(_members(read))
        for step, member in _members(written):
            other = others.get(step, _ABSENT)
            if other is _ABSENT:
                break
            if not same(member, other):
                return first_difference(member, other, place + step if place else step.lstrip("."))
    return place, written, read


def first_unencodable(value: object, place: str = "") -> tuple[str, object] | None:
    """The innermost member that has no JSON form, with its place; None if there is no such member."""
    if _encodable(value):
        return None
    for step, member in _members(value):
        found = first_unencodable(member, place + step if place else step.lstrip("."))
        if found is not None:
            return found
    return place, value


def _same_items(written: dict[Any, Any], read: dict[Any, Any]) -> bool:
    if len(written) != len(read):
        return False
    for (key, member), (other_key, other) in zip(written.items(), read.items(), strict=True):
        if key != other_key or type(key) is not type(other_key) or not same(member, other):
            return False
    return True


def _same_hidden(written: BaseModel, read: BaseModel) -> bool:
    return (
        written.__pydantic_private__ == read.__pydantic_private__
        and written.__pydantic_extra__ == read.__pydantic_extra__
    )


def _equal(written: Any, read: Any) -> bool:
    try:
        return bool(written == read) or (isinstance(written, float) and written != written and read != read)  # noqa: PLR0124
    except Exception:  # noqa: BLE001 - whatever a foreign __eq__ raises, it did not say "equal"
        return False


_NAMES: dict[type[Any], tuple[str, ...] | None] = {}


def _member_names(kind: type[Any]) -> tuple[str, ...] | None:
    try:
        return _NAMES[kind]
    except KeyError:
        if issubclass(kind, BaseModel):
            names: tuple[str, ...] | None = tuple(kind.model_fields)
        elif is_dataclass(kind):
            names = tuple(field.name for field in fields(kind))
        else:
            names = None
        _NAMES[kind] = names
        return names


def _members(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, member in cast("Mapping[object, object]", value).items():
            yield (f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"), member
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes | bytearray):
        for index, member in enumerate(cast("Sequence[object]", value)):
            yield f"[{index}]", member
    else:
        for name in _member_names(type(value)) or ():
            yield f".{name}", getattr(value, name, _ABSENT)


def _encodable(value: object) -> bool:
    try:
        to_json(value)
    except (PydanticSerializationError, ValueError, RecursionError):
        return False
    return True
