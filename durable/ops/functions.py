"""What operations know of the functions that they are given: their names and the type of their results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Final
from weakref import WeakKeyDictionary

from durable import codec


@dataclass(frozen=True, slots=True)
class KnownFunction:
    """A function that is run by an operation."""

    name: str
    """What the operation is called where the author gives it no name."""
    qualified_name: str
    """What entries carry, and what every replay checks."""
    result_type: Any


def known_function(fn: Callable[..., Any]) -> KnownFunction:
    """The names and the result type; looks through partials, and at the class of a callable object."""
    known = _known.get(fn) if type(fn) is FunctionType else None
    if known is not None:
        return known
    qualified_name = codec.callable_name(fn)
    name = qualified_name.removesuffix(".__call__").rpartition(".")[2]
    known = KnownFunction(name, qualified_name, codec.return_type(fn))
    if type(fn) is FunctionType and "<locals>" not in qualified_name:
        _known[fn] = known  # functions of modules and classes stay for good; others would pile up here
    return known


_known: dict[Callable[..., Any], KnownFunction] = {}


def positional_arguments(fn: Callable[..., Any]) -> tuple[int, int] | None:
    """How many arguments without a keyword a Python function must and may get; None where that is not known or not bounded."""
    bound = type(fn) is MethodType
    function = fn.__func__ if isinstance(fn, MethodType) else fn
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    if code.co_flags & inspect.CO_VARARGS:
        return None
    most = code.co_argcount - bound
    return most - len(function.__defaults__ or ()), most


def misfit(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Why a Python function cannot be called with these arguments; None where it can, or where that is not known.

    Called for every step of every replay, so a plain call is only counted. What a decorator hides is not looked for: it
    may well add arguments of its own.
    """
    function = fn.__func__ if isinstance(fn, MethodType) else fn
    if type(function) is not FunctionType:
        return None
    if not kwargs and not function.__code__.co_kwonlyargcount:
        counts = positional_arguments(fn)
        if counts is None or counts[0] <= len(args) <= counts[1]:
            return None
    fitting = _fitting.get(function)
    if fitting is None:
        fitting = _fitting[function] = set()
    bound = (fn.__self__, *args) if isinstance(fn, MethodType) else args
    shape = (len(bound), *kwargs)
    if shape not in fitting:
        try:
            inspect.signature(function, follow_wrapped=False).bind(*bound, **kwargs)
        except TypeError as problem:
            return str(problem)
        if len(fitting) < FITTING:
            fitting.add(shape)
    return None


FITTING: Final = 32
"""Forms of a call that are known to fit, for each function."""
_fitting: WeakKeyDictionary[Callable[..., Any], set[tuple[int | str, ...]]] = WeakKeyDictionary()
