"""Values to JSON text and back, by declared type, with the promise that what is read equals what was written."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, get_args

from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from durable.codec.annotations import UNTYPED
from durable.codec.comparison import Difference, first_difference, first_unencodable, same
from durable.errors import InvalidInput, LimitExceeded, NotStorable
from durable.model.limits import BLOB_BYTES
from durable.model.stored import check_readable

Type = Any
"""Any form that pydantic can validate (a class, `A | B`, `list[int]`, `Annotated[...]`), or `UNTYPED`."""


def encode(value: object, type_: Type, *, what: str = "the value", limit: int = BLOB_BYTES) -> str:
    """The JSON text of a value, after checking that reading it gives the same again.

    Raises:
        NotStorable: It would not come back as it is; the message names the place inside it.
        LimitExceeded: The text is larger than what can be stored.
    """
    return round_trip(value, type_, what=what, limit=limit)[0]


def round_trip(value: object, type_: Type, *, what: str = "the value", limit: int = BLOB_BYTES) -> tuple[str, Any]:
    """The JSON text of a value, and the value as it is read from that text; raises as `encode` does."""
    try:
        return _round_trip(value, type_, what, limit)
    except (NotStorable, LimitExceeded):
        raise
    except Exception as problem:  # whatever a hostile value does while it is looked at: too deep, endless, broken
        message = f"{what} cannot be stored as {type_name(type_)}: {type(problem).__name__} while it was encoded"
        raise NotStorable(message) from problem


def _round_trip(value: object, type_: Type, what: str, limit: int) -> tuple[str, Any]:
    plain = type(value)
    if plain is type_ and plain in _IMMUTABLE:
        return _limited(_plain_text(value, what), what, limit), value
    if type_ is UNTYPED:
        text = _plain_text(value, what)
        decoded = from_json(text)
    else:
        adapter = _adapter(type_)
        try:
            text = adapter.dump_json(value, round_trip=True, warnings=False).decode()
            decoded = adapter.validate_json(text, by_alias=True, by_name=True)
        except (PydanticSerializationError, ValidationError, ValueError) as problem:
            raise _unstorable(value, type_, what, problem) from problem
    if not same(value, decoded):
        raise _lossy(first_difference(value, decoded), type_, what)
    return _limited(text, what, limit), decoded


def decode(text: str | None, type_: Type) -> Any:
    """Reads a value; None stands for the text of None.

    Raises:
        pydantic.ValidationError: The text does not fit the type (a ValueError, as for a text that is no JSON).
        PayloadUnreadable: The text could not be had.
    """
    if text is None:
        text = "null"
    check_readable((text,))
    if type_ is UNTYPED:
        return from_json(text)
    return _adapter(type_).validate_json(text, by_alias=True, by_name=True)


def validated(value: object, type_: Type, *, what: str) -> Any:
    """A value that a caller handed in, as the declared type has it: a dict becomes the model it describes.

    Raises:
        InvalidInput: It does not fit; the reason is pydantic's.
    """
    if type_ is UNTYPED:
        return value
    try:
        return _adapter(type_).validate_python(value, by_alias=True, by_name=True)
    except ValidationError as problem:
        raise InvalidInput(what, reason_of(problem)) from problem


def parsed(text: str | bytes, type_: Type, *, what: str) -> Any:
    """A value that a caller sent as JSON.

    Raises:
        InvalidInput: It is no JSON, or does not fit; the reason is pydantic's.
    """
    try:
        if type_ is UNTYPED:
            return from_json(text, allow_inf_nan=False)
        return _adapter(type_).validate_json(text, by_alias=True, by_name=True)
    except ValidationError as problem:
        raise InvalidInput(what, reason_of(problem)) from problem
    except ValueError as problem:
        raise InvalidInput(what, str(problem)) from problem


def digest(text: str | None) -> str:
    """A short hash of a JSON text that does not depend on the order of its keys: equal inputs have equal digests."""
    if text is None:
        return ""
    canonical = json.dumps(from_json(text), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def why_unstorable(type_: Type) -> str | None:
    """Why no value of the type can be stored; None where some can, or where it names what is not defined yet."""
    try:
        _adapter(type_)
    except NotStorable as problem:
        return str(problem) if isinstance(problem.__cause__, PydanticSchemaGenerationError) else None
    return None


def type_name(type_: Type) -> str:
    """How the type is called in messages."""
    return type_.__qualname__ if isinstance(type_, type) and not get_args(type_) else str(type_).replace("typing.", "")


# Adapters. Bytes are base64 where the type itself does not decide, because text would refuse most of them.

_IMMUTABLE: Final = frozenset({str, int, bool, type(None)})
_CONFIG: Final = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings")
_adapters: dict[object, TypeAdapter[Any]] = {}


def _adapter(type_: Type) -> TypeAdapter[Any]:
    # `A | B` equals `B | A` and hashes alike, but pydantic may prefer the first: the text tells them apart.
    key = type_ if isinstance(type_, type) else (type_, repr(type_))
    try:
        return _adapters[key]
    except KeyError:
        adapter = _adapters[key] = _new_adapter(type_)
        return adapter
    except TypeError:  # metadata that cannot be hashed
        return _new_adapter(type_)


def _new_adapter(type_: Type) -> TypeAdapter[Any]:
    try:
        try:
            return TypeAdapter(type_, config=_CONFIG)
        except PydanticUserError as problem:
            if problem.code != "type-adapter-config-unused":
                raise
            return TypeAdapter(type_)
    except PydanticUserError as problem:
        reason = problem.message.partition(". ")[0]
        raise NotStorable(f"values of type {type_name(type_)} cannot be stored: {reason}") from problem


def _plain_text(value: object, what: str) -> str:
    try:
        return to_json(value, inf_nan_mode="null").decode()
    except (PydanticSerializationError, ValueError) as problem:
        raise _unstorable(value, UNTYPED, what, problem) from problem


def _limited(text: str, what: str, limit: int) -> str:
    # A character has at most four bytes, so most texts need no counting.
    if len(text) * 4 > limit and (size := len(text.encode())) > limit:
        raise LimitExceeded(what, size, limit, instead="Store it elsewhere and pass a reference to it.")
    return text


# Refusals


def _unstorable(value: object, type_: Type, what: str, problem: Exception) -> NotStorable:
    if isinstance(problem, ValidationError):
        reason = "it is None (a missing return?)" if value is None else reason_of(problem)
        return NotStorable(f"{what} cannot be stored as {type_name(type_)}: {reason}")
    found = first_unencodable(value)
    if found is None:
        return NotStorable(f"{what} cannot be stored as {type_name(type_)}: {problem}")
    place, member = found
    if isinstance(member, str):
        return NotStorable(f"{what} cannot be stored: {place or 'it'} is a text that UTF-8 cannot hold")
    return NotStorable(
        f"{what} cannot be stored: {place or 'it'} is a {_class_name(member)}. "
        "Return data, or open such a thing inside the step that uses it."
    )


def _lossy(difference: Difference, type_: Type, what: str) -> NotStorable:
    place, written, read = difference
    if type_ is UNTYPED:
        return NotStorable(f"{what} cannot be stored: {place or 'it'} {_not_plain(written)}")
    if written is None and not place:
        return NotStorable(f"{what} cannot be stored as {type_name(type_)}: it is None (a missing return?)")
    if type(written) is not type(read):
        lost = sorted(_names(written) - _names(read))
        loss = f"; {', '.join(lost)} would be lost" if lost else ""
        return NotStorable(
            f"{what} cannot be stored as {type_name(type_)}: {place or 'it'} is a {_class_name(written)} and would be read back "
            f"as {_class_name(read)}{loss}. Declare the type that it has, or a union with a discriminator."
        )
    return NotStorable(
        f"{what} cannot be stored as {type_name(type_)}: {place or 'it'} would not be read back equal to what was written "
        f"({_class_name(written)}). A class needs __eq__ and an encoding that keeps all of it."
    )


def _not_plain(value: object) -> str:
    if isinstance(value, float):
        return f"is {value}, which JSON cannot hold."
    if type(value) is dict:
        return "is a dict with keys that are no texts; a return annotation such as dict[int, str] keeps them."
    return (
        f"is a {_class_name(value)} and nothing declares a type (a lambda, or a function without a return annotation), so only "
        f"plain JSON values are kept. Annotate the function, or say Step(result={type(value).__name__})."
    )


def _class_name(value: object) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ in {"builtins", "__main__"} else f"{cls.__module__}.{cls.__qualname__}"


def _names(value: object) -> set[str]:
    return set(getattr(value, "__dict__", ()))


def reason_of(problem: ValueError) -> str:
    """Why a text or a value was refused, without the value itself: it may be a secret, and messages reach logs."""
    if not isinstance(problem, ValidationError):
        return str(problem)
    reasons = [
        f"{_place(error['loc'])}{error['msg']}" for error in problem.errors(include_url=False, include_input=False)
    ]
    shown = "; ".join(reasons[:_REASONS])
    return shown if len(reasons) <= _REASONS else f"{shown}; and {len(reasons) - _REASONS} more"


def _place(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    return f"{text}: " if text else ""


_REASONS: Final = 5
