"""The fields of a type, as far as annotations say them: what may be asked of a payload before there is one."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from typing_extensions import TypeAliasType, get_type_hints, is_typeddict

from durable.codec.annotations import UNTYPED


@dataclass(frozen=True, slots=True)
class Field:
    """A field, under every name that its JSON may have."""

    names: tuple[str, ...]
    type: Any


def fields_of(type_: Any) -> Mapping[str, Field] | None:
    """The fields by each of their names; none of a type without fields. None where any name will do (a dict, plain JSON).

    Of a union it is the fields of all its members.
    """
    type_ = _bare(type_)
    if type_ in (UNTYPED, Any, object) or _is_mapping(type_):
        return None
    if get_origin(type_) in (Union, types.UnionType):
        members = [fields_of(member) for member in get_args(type_)]
        return _merged([member for member in members if member is not None]) if None not in members else None
    plain: Any = get_origin(type_) or type_
    if isinstance(plain, type) and issubclass(plain, BaseModel):
        model = cast("type[BaseModel]", type_)
        return _by_name(Field(_names(name, info), info.annotation) for name, info in model.model_fields.items())
    plain = cast("Any", plain)
    if dataclasses.is_dataclass(plain):
        hints = get_type_hints(plain, include_extras=True)
        return _by_name(Field((field.name,), hints[field.name]) for field in dataclasses.fields(plain))
    if is_typeddict(plain):
        hints = get_type_hints(plain)
        return _by_name(Field((name,), hint) for name, hint in hints.items())
    return {}


def mapping_values(type_: Any) -> Any:
    """The type of what a dict holds, `UNTYPED` where nothing says so."""
    arguments = get_args(_bare(type_))
    return arguments[1] if _is_mapping(_bare(type_)) and len(arguments) == 2 else UNTYPED


def _bare(type_: Any) -> Any:
    while True:
        if get_origin(type_) is Annotated:
            type_ = get_args(type_)[0]
        elif isinstance(type_, TypeAliasType):
            type_ = type_.__value__
        else:
            return type_


def _is_mapping(type_: Any) -> bool:
    plain: Any = get_origin(type_) or type_
    return isinstance(plain, type) and issubclass(cast("type[Any]", plain), Mapping) and not is_typeddict(type_)


def _names(name: str, info: Any) -> tuple[str, ...]:
    aliases: list[str] = [name]
    for alias in (info.alias, info.serialization_alias, info.validation_alias):
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        aliases += [choice for choice in choices if isinstance(choice, str)]
    return tuple(dict.fromkeys(aliases))


def _by_name(fields: Any) -> dict[str, Field]:
    return {name: field for field in fields for name in field.names}


def _merged(members: list[Mapping[str, Field]]) -> dict[str, Field]:
    merged: dict[str, Field] = {}
    for member in members:
        for name, field in member.items():
            known = merged.get(name)
            merged[name] = field if known is None else Field(tuple(dict.fromkeys(known.names + field.names)), UNTYPED)
    return merged
