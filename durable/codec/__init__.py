"""Values to JSON text and back, by the type that an annotation declares."""

from durable.codec.annotations import UNTYPED, Untyped, callable_name, input_type, return_type
from durable.codec.text import (
    Type,
    decode,
    digest,
    encode,
    parsed,
    reason_of,
    round_trip,
    type_name,
    validated,
    why_unstorable,
)

__all__ = [
    "UNTYPED",
    "Type",
    "Untyped",
    "callable_name",
    "decode",
    "digest",
    "encode",
    "input_type",
    "parsed",
    "reason_of",
    "return_type",
    "round_trip",
    "type_name",
    "validated",
    "why_unstorable",
]
