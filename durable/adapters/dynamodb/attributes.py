"""Python values as attribute values of DynamoDB's low-level interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from durable.adapters.sizes import error_from, error_text, messages_from, messages_text, pack, unpack
from durable.model.entry import Compensation
from durable.model.run import Carried, Cut, Wait

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.errors import ErrorInfo
    from durable.model import attributes as search
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


def cut(value: Cut) -> AttributeValue:
    """A cut as one short text, so that a list of them tells whether it has this one."""
    return {"S": f"{value.epoch} {value.n} {value.until}"}


def cuts(value: tuple[Cut, ...]) -> AttributeValue:
    """Cuts."""
    return {"L": [cut(member) for member in value]}


def read_cuts(value: AttributeValue) -> tuple[Cut, ...]:
    """Cuts."""
    return tuple(Cut(*map(int, member["S"].split())) for member in value["L"])


def carries(value: Carried) -> AttributeValue:
    """The run that messages come from, and their ids."""
    return texts((value.run_id, *value.message_ids))


def read_carries(value: AttributeValue) -> Carried:
    """The run that messages come from, and their ids."""
    run_id, *message_ids = read_texts(value)
    return Carried(run_id, tuple(message_ids))


def compensation(value: Compensation) -> AttributeValue:
    """How a step is undone."""
    return packed(json.dumps([value.fn, value.args], separators=(",", ":"), ensure_ascii=False))


def read_compensation(value: AttributeValue) -> Compensation:
    """How a step is undone."""
    return Compensation(*json.loads(read_packed(value)))


def headers(value: Mapping[str, str]) -> AttributeValue:
    """Headers, as JSON: they are few and never looked at one by one."""
    return text(json.dumps(dict(value), separators=(",", ":"), ensure_ascii=False))


def read_headers(value: AttributeValue) -> dict[str, str]:
    """Headers."""
    return json.loads(value["S"])


def search_attribute(value: search.AttributeValue) -> AttributeValue:
    """A value that listings can be narrowed by."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case _:
            return number(value)


def search_attributes(value: search.Attributes) -> AttributeValue:
    """Search attributes by name."""
    return {"M": {name: search_attribute(member) for name, member in value.items()}}


def read_search_attributes(value: AttributeValue) -> dict[str, search.AttributeValue]:
    """Search attributes by name. DynamoDB does not tell 1.0 from 1: a number without a fraction is read as an int."""
    return {name: _read_search_attribute(member) for name, member in value["M"].items()}


def _read_search_attribute(value: AttributeValue) -> search.AttributeValue:
    ((kind, content),) = value.items()
    if kind != "N":
        return content
    return int(content) if content.lstrip("-").isdigit() else float(content)
