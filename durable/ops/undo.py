"""How a step is undone: what its record says about it, and the call that a rollback makes of that.

| when                    | what happens                                                                           |
|-------------------------|----------------------------------------------------------------------------------------|
| the step is called      | the undo function must be found by its name and take the result and the step's arguments |
| before its body runs    | the arguments are encoded; what cannot be stored fails the step                        |
| its result is recorded  | function and arguments are part of that entry                                          |
| the run is rolled back  | the function is looked up, and called with the result and the arguments                |
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from pydantic_core import from_json, to_json

from durable import codec
from durable.errors import LimitExceeded, Misuse, UndecodableHistory
from durable.model.entry import Compensation, Entry
from durable.model.limits import UNDO_BYTES


class UndoMissing(Misuse):
    """The function that undoes a step is not in the deployed code."""

    def __init__(self, location: str, function: str) -> None:
        super().__init__(
            f'the step at "{location}" is undone by {function}, which the deployed code does not have. Deploy code that '
            "has it under this name: the rollback goes on where it is."
        )


def check_undo(undo: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raises TypeError unless a rollback will find the function by its name and can call it."""
    reference = _reference(undo)
    if _found(reference) is not undo:
        raise TypeError(
            f"Step.undo() takes a function of a module, because a rollback finds it by its name, perhaps in another "
            f"process; {reference} is not that function."
        )
    try:
        _signature(undo).bind(None, *args, **kwargs)
    except TypeError as problem:
        raise TypeError(
            f"the undo function {reference} must take the step's result and then the step's arguments: {problem}"
        ) from None


def compensation_of(undo: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Compensation:
    """What the step's entry says of how it is undone.

    Raises:
        NotStorable: An argument would not come back as it is.
        LimitExceeded: The arguments are too large.
    """
    name = codec.callable_name(undo)
    positional = [
        codec.encode(value, _type_at(undo, index), what=f"argument {index} of {name}")
        for index, value in enumerate(args, start=1)
    ]
    named = [
        f"{to_json(key).decode()}:{codec.encode(value, _type_of(undo, key), what=f'argument {key} of {name}')}"
        for key, value in kwargs.items()
    ]
    text = f'{{"args":[{",".join(positional)}],"kwargs":{{{",".join(named)}}}}}'
    if (size := len(text.encode())) > UNDO_BYTES:
        raise LimitExceeded(
            f"what {name} is called with", size, UNDO_BYTES, instead="Let the undo read what it needs by an id."
        )
    return Compensation(_reference(undo), text)


def call_of(entry: Entry, compensation: Compensation) -> Callable[[], Any]:
    """The call that undoes what the entry records; raises a Misuse where the deployed code cannot make it."""
    undo = _found(compensation.fn)
    if undo is None:
        raise UndoMissing(entry.location, compensation.fn)
    recorded = from_json(compensation.args)
    try:
        result = codec.decode(entry.value, _type_at(undo, 0))
        args = [_read(value, _type_at(undo, index)) for index, value in enumerate(recorded["args"], start=1)]
        kwargs = {key: _read(value, _type_of(undo, key)) for key, value in recorded["kwargs"].items()}
    except (ValueError, TypeError, LookupError) as problem:
        raise UndecodableHistory(entry.location, f"the arguments of {compensation.fn}", str(problem)) from problem
    return partial(undo, result, *args, **kwargs)


def _reference(undo: Callable[..., Any]) -> str:
    return f"{getattr(undo, '__module__', None)}:{getattr(undo, '__qualname__', repr(undo))}"


def _found(reference: str) -> Callable[..., Any] | None:
    """The function of this name, or None; its module is imported if it is not there yet."""
    module, _, qualname = reference.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return found if callable(found) else None


@lru_cache(1024)
def _signature(undo: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(undo)


def _type_at(undo: Callable[..., Any], index: int) -> Any:
    """The declared type of a positional argument; plain JSON where there is no annotation."""
    kinds = [parameter.kind for parameter in _signature(undo).parameters.values()]
    for place, kind in enumerate(kinds):
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return codec.input_type(undo, after=place)
        if place == index:
            return codec.input_type(undo, after=index)
    raise LookupError(f"{codec.callable_name(undo)} takes no argument {index}")


def _type_of(undo: Callable[..., Any], name: str) -> Any:
    """The declared type of a keyword argument."""
    parameters = list(_signature(undo).parameters.values())
    for place, parameter in enumerate(parameters):
        if parameter.name == name or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            return codec.input_type(undo, after=place)
    raise LookupError(f"{codec.callable_name(undo)} takes no argument {name}")


def _read(value: Any, type_: Any) -> Any:
    return codec.decode(to_json(value, inf_nan_mode="strings").decode(), type_)
