"""What operations know of the functions that they are given: their names and the type of their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

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
