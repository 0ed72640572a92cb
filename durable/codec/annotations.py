"""What a function's annotations say about its result and its input."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Never, NoReturn, TypeVar, cast, final, get_args, get_origin
from weakref import WeakKeyDictionary

import typing_extensions


@final
class Untyped:
    """The type of `UNTYPED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "plain JSON"


UNTYPED: Final = Untyped()
"""Nothing declares the type, so only what JSON itself has is stored: None, bool, int, float, str, list, dict."""

_SAYS_NOTHING: Final = frozenset(
    {Any, object, NoReturn, Never, typing_extensions.Self, typing.Self, inspect.Parameter.empty}
)
_PROMISES: Final = frozenset({Awaitable, Coroutine})
_results: WeakKeyDictionary[Callable[..., Any], Any] = WeakKeyDictionary()


def return_type(fn: Callable[..., Any], *, names: Mapping[str, Any] | None = None) -> Any:
    """The declared type of what calling `fn` and awaiting it gives, or `UNTYPED`.

    It is found through partials, bound methods, callable objects, decorators that use `functools.wraps`, classes, and
    annotations that are texts; `names` are what such texts may name besides the function's module and closure.

    Raises:
        TypeError: The annotation is a text that names something unknown.
    """
    declared = _declared(fn)
    if isinstance(declared, type) and not inspect.isroutine(declared):
        return declared if declared is not object else UNTYPED
    annotations: Mapping[str, Any] = getattr(declared, "__annotations__", None) or {}
    annotation = annotations.get("return", inspect.Parameter.empty)
    if annotation is inspect.Parameter.empty:
        return UNTYPED
    if annotation is None:
        return type(None)
    if type(annotation) is type and annotation is not object:
        return annotation
    try:
        return _results[declared]
    except (KeyError, TypeError):
        found = _meaning(resolve(annotation, declared, "return", names))
        with contextlib.suppress(TypeError):  # callables that no weak reference can point at
            _results[declared] = found
        return found


def input_type(fn: Callable[..., Any], *, after: int = 1, names: Mapping[str, Any] | None = None) -> Any:
    """The declared type of the parameter that follows the first `after` ones: a workflow's input; `UNTYPED` if none."""
    declared = _declared(fn)
    parameters = list(inspect.signature(declared).parameters.values())
    annotation = parameters[after].annotation
    return _meaning(resolve(annotation, declared, parameters[after].name, names))


def resolve(annotation: Any, fn: Callable[..., Any], what: str, names: Mapping[str, Any] | None = None) -> Any:
    """An annotation with the texts in it replaced by what they name.

    `names` are looked at first, then the function's closure and its module.
    """
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation
    plain = inspect.unwrap(fn)
    scope = {**_closure(plain), **(names or {})}
    holder = types.SimpleNamespace(__annotations__={what: annotation})
    try:
        module_names = getattr(plain, "__globals__", None) or vars(sys.modules[plain.__module__])
        return typing.get_type_hints(holder, module_names, scope, include_extras=True)[what]
    except (NameError, AttributeError, KeyError, SyntaxError) as problem:
        raise TypeError(
            f"the annotation {annotation!r} ({what}) of {callable_name(fn)} cannot be resolved: {problem}. "
            "Define the type at module level, imported at run time."
        ) from problem


def callable_name(fn: Callable[..., Any]) -> str:
    """The qualified name of the function behind a callable, as the history keeps it."""
    declared = _declared(fn)
    name: str = getattr(declared, "__qualname__", None) or type(declared).__qualname__
    return name


def _declared(fn: Callable[..., Any]) -> Any:
    """The function or class behind partials, bound methods and callable objects."""
    declared = cast("object", fn)
    while True:
        match declared:
            case functools.partial():
                declared = cast("functools.partial[Any]", declared).func
            case types.MethodType():
                declared = declared.__func__
            case type():
                return declared
            case _ if inspect.isroutine(declared):
                return declared
            case _:
                call = getattr(type(declared), "__call__", None)  # noqa: B004 - the function itself is wanted
                return call if isinstance(call, types.FunctionType) else declared


def _meaning(annotation: Any) -> Any:
    if get_origin(annotation) in _PROMISES:
        annotation = get_args(annotation)[-1]
    try:
        if annotation in _SAYS_NOTHING:
            return UNTYPED
    except TypeError:  # metadata that cannot be hashed
        return annotation
    return UNTYPED if _has_variables(annotation) else annotation


def _has_variables(annotation: Any) -> bool:
    return isinstance(annotation, TypeVar | typing_extensions.TypeVar) or bool(
        getattr(annotation, "__parameters__", ())
    )


def _closure(fn: Any) -> dict[str, Any]:
    code, cells = getattr(fn, "__code__", None), getattr(fn, "__closure__", None)
    if code is None or not cells:
        return {}
    names: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return names
