"""Typed names of what a run receives and shows: signals, updates, events, published state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic

from typing_extensions import TypeForm, TypeVar

from durable.model.ids import check_name

T = TypeVar("T")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)


# Generic values have no slots: frozen ones with slots fail when they are made as `Ok[int](3)`.


@dataclass(frozen=True, init=False)
class Signal(Generic[T]):
    """A message name with the type of its body: `APPROVE = Signal("approve", Approve)`; any type form will do."""

    name: str
    type: Any

    def __init__(self, name: str, body: TypeForm[T], /) -> None:
        object.__setattr__(self, "name", check_name("signal name", name))
        object.__setattr__(self, "type", _a_type("Signal", name, body))


@dataclass(frozen=True, init=False)
class Update(Generic[T, R]):
    """A message that wants an answer: its name, the type of its argument and that of the response."""

    name: str
    type: Any
    response: Any

    def __init__(self, name: str, arg: TypeForm[T], response: TypeForm[R], /) -> None:
        object.__setattr__(self, "name", check_name("update name", name))
        object.__setattr__(self, "type", _a_type("Update", name, arg))
        object.__setattr__(self, "response", _a_type("Update", name, response))


@dataclass(frozen=True, init=False)
class Event(Generic[T]):
    """Something that happened, told to every run that waits for it."""

    name: str
    type: Any

    def __init__(self, name: str, body: TypeForm[T], /) -> None:
        object.__setattr__(self, "name", check_name("event name", name))
        object.__setattr__(self, "type", _a_type("Event", name, body))


@dataclass(frozen=True, init=False)
class StateKey(Generic[T]):
    """A value that a run publishes for others to read."""

    name: str
    type: Any

    def __init__(self, name: str, body: TypeForm[T], /) -> None:
        object.__setattr__(self, "name", check_name("state key", name))
        object.__setattr__(self, "type", _a_type("StateKey", name, body))


@dataclass(frozen=True)
class Message(Generic[T_co]):
    """A message that the run has consumed."""

    id: str
    name: str
    body: T_co
    sent_at: datetime


def _a_type(what: str, name: str, form: object) -> object:
    if isinstance(form, str | int | float | bytes | list | dict):
        raise TypeError(f'{what}("{name}", ...) takes a type, not {form!r}')
    return form
