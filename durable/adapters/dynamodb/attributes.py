"""Python values as attribute values of DynamoDB's low-level interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.adapters.sizes import error_from, error_text, messages_from, messages_text, pack, unpack
from durable.model.run import Wait

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.errors import ErrorInfo
    from durable.model.message import StoredMessage

AttributeValue = dict[str, Any]
Item = dict[str, AttributeValue]


def text(value: str) -> AttributeValue:
    """A string."""
    return {"S": value}


def read_text(value: AttributeValue) -> str:
    """A string."""
    return value["S"]


def number(value: float) -> AttributeValue:
    """A number; `repr` keeps every bit of a float, and 17 digits fit into DynamoDB's 38."""
    return {"N": repr(value)}


def read_float(value: AttributeValue) -> float:
    """A number with a fraction."""
    return float(value["N"])


def read_int(value: AttributeValue) -> int:
    """A whole number."""
    return int(value["N"])


def flag(value: bool) -> AttributeValue:
    """True; what is false is not stored."""
    return {"BOOL": value}


def read_flag(value: AttributeValue) -> bool:
    """True or false."""
    return value["BOOL"]


def packed(value: str) -> AttributeValue:
    """A text that may be large: a string, or the bytes of a compressed one."""
    stored = pack(value)
    return {"S": stored} if isinstance(stored, str) else {"B": stored}


def read_packed(value: AttributeValue) -> str:
    """A text that was packed."""
    return value["S"] if "S" in value else unpack(value["B"])


def texts(values: tuple[str, ...]) -> AttributeValue:
    """A list of strings."""
    return {"L": [{"S": value} for value in values]}


def read_texts(value: AttributeValue) -> tuple[str, ...]:
    """A list of strings."""
    return tuple(member["S"] for member in value["L"])


def error(value: ErrorInfo) -> AttributeValue:
    """An error, as JSON."""
    return packed(error_text(value))


def read_error(value: AttributeValue) -> ErrorInfo:
    """An error."""
    return error_from(read_packed(value))


def messages(value: tuple[StoredMessage, ...]) -> AttributeValue:
    """Consumed messages, as JSON."""
    return packed(messages_text(value))


def read_messages(value: AttributeValue) -> tuple[StoredMessage, ...]:
    """Consumed messages."""
    return messages_from(read_packed(value))


def waits(value: tuple[Wait, ...]) -> AttributeValue:
    """Waits as lines of digest and deadline: a third of the bytes of maps, and the run record pays by the KB."""
    return {"L": [{"S": f"{wait.digest} {'' if wait.deadline is None else repr(wait.deadline)}"} for wait in value]}


def read_waits(value: AttributeValue) -> tuple[Wait, ...]:
    """Waits."""
    pairs = (member["S"].partition(" ") for member in value["L"])
    return tuple(Wait(digest=digest, deadline=float(deadline) if deadline else None) for digest, _, deadline in pairs)


def fences(value: Mapping[int, int]) -> AttributeValue:
    """Fences by epoch."""
    return {"M": {str(epoch): {"N": str(fence)} for epoch, fence in value.items()}}


def read_fences(value: AttributeValue) -> dict[int, int]:
    """Fences by epoch."""
    return {int(epoch): int(fence["N"]) for epoch, fence in value["M"].items()}
