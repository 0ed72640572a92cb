"""What `match=` asks of an event's payload, checked against the event's type when the code asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from durable import codec
from durable.codec.fields import fields_of, mapping_values
from durable.errors import InvalidInput, NotStorable
from durable.model.subscription import MatchKey, Scalar

if TYPE_CHECKING:
    from durable.channels import Event


def match_keys(event: Event[Any], match: Mapping[str, object] | None) -> tuple[MatchKey, ...]:
    """What is asked, in a form that needs no type; the fields are named with dots between them ("customer.id").

    Raises:
        ValueError: The payload has no such field, or the field never has such a value.
    """
    if match is None:
        return ()
    if not isinstance(match, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller is checked
        raise TypeError(
            f'ctx.wait_for_event(match=...) takes fields and their values, not {match!r}: {{"id": order.id}}'
        )
    return tuple(_key(event, path, value) for path, value in sorted(match.items()))


def path_of(what: str, type_: Any, path: str) -> tuple[tuple[tuple[str, ...], ...], Any]:
    """The way to a field, and the field's type; ValueError where the type has no such field."""
    steps: list[tuple[str, ...]] = []
    for name in path.split("."):
        fields = fields_of(type_)
        if fields is None:
            steps.append((name,))
            type_ = mapping_values(type_)
            continue
        field = fields.get(name)
        if field is None:
            known = ", ".join(dict.fromkeys(field.names[0] for field in fields.values())) or "none"
            raise ValueError(f'{what}: {codec.type_name(type_)} has no field "{name}" (its fields: {known})')
        steps.append(field.names)
        type_ = field.type
    return tuple(steps), type_


def _key(event: Event[Any], path: str, value: object) -> MatchKey:
    what = f'ctx.wait_for_event("{event.name}", match={{"{path}": ...}})'
    steps, type_ = path_of(what, event.type, path)
    return MatchKey(steps, _scalar(what, type_, value))


def _scalar(what: str, type_: Any, value: object) -> Scalar:
    """The value as the payload's JSON has it."""
    try:
        typed = codec.validated(value, type_, what="the value")
        plain = codec.decode(codec.encode(typed, type_, what="the value"), codec.UNTYPED)
    except (InvalidInput, NotStorable) as error:
        raise ValueError(f"{what}: {error}") from None
    if isinstance(plain, list | dict):
        message = f"{what}: a field is compared with a text, a number, a truth value or None, not {value!r}"
        raise ValueError(message)  # noqa: TRY004 - its type is right, what it becomes is not
    return plain
