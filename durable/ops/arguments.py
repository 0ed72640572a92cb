"""The arguments of a call that is made elsewhere or later, as JSON by the annotations of the function that is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import from_json, to_json

from durable import codec


def arguments_text(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], *, after: int = 0) -> str:
    """`{"args": [...], "kwargs": {...}}`; the positional ones stand for those that follow the first `after` parameters.

    Raises:
        NotStorable: An argument would not come back as it is.
        LimitExceeded: An argument is too large.
    """
    name = codec.callable_name(fn)
    positional = [
        codec.encode(value, _type_at(fn, index), what=f"argument {index - after + 1} of {name}")
        for index, value in enumerate(args, start=after)
    ]
    named = [
        f"{to_json(key).decode()}:{codec.encode(value, _type_of(fn, key), what=f'argument {key} of {name}')}"
        for key, value in kwargs.items()
    ]
    return f'{{"args":[{",".join(positional)}],"kwargs":{{{",".join(named)}}}}}'


def arguments_from(text: str, fn: Callable[..., Any], *, after: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """Reads what `arguments_text` wrote, by the annotations that the function has now.

    Raises:
        ValueError, TypeError, LookupError: The function takes other arguments.
    """
    recorded = from_json(text)
    args = [_read(value, _type_at(fn, index)) for index, value in enumerate(recorded["args"], start=after)]
    kwargs = {key: _read(value, _type_of(fn, key)) for key, value in recorded["kwargs"].items()}
    return args, kwargs


@lru_cache(1024)
def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """What the function takes."""
    return inspect.signature(fn)


def _type_at(fn: Callable[..., Any], index: int) -> Any:
    """The declared type of a positional argument; plain JSON where there is no annotation."""
    kinds = [parameter.kind for parameter in signature_of(fn).parameters.values()]
    for place, kind in enumerate(kinds):
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return codec.input_type(fn, after=place)
        if place == index:
            return codec.input_type(fn, after=index)
    raise LookupError(f"{codec.callable_name(fn)} takes no argument {index}")


def _type_of(fn: Callable[..., Any], name: str) -> Any:
    """The declared type of a keyword argument."""
    parameters = list(signature_of(fn).parameters.values())
    for place, parameter in enumerate(parameters):
        if parameter.name == name or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            return codec.input_type(fn, after=place)
    raise LookupError(f"{codec.callable_name(fn)} takes no argument {name}")


def _read(value: Any, type_: Any) -> Any:
    return codec.decode(to_json(value, inf_nan_mode="strings").decode(), type_)
