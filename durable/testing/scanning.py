"""Finds clocks, chance and blocking calls in the source of workflow code, which is replayed."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from durable.app import App

_CLOCK: Final = "ctx.now()"
_CHANCE: Final = "ctx.random"

INSTEAD: Final[Mapping[str, str]] = {
    "time.time": _CLOCK, "time.time_ns": _CLOCK, "time.monotonic": _CLOCK, "time.perf_counter": _CLOCK,
    "datetime.datetime.now": _CLOCK, "datetime.datetime.utcnow": _CLOCK, "datetime.datetime.today": _CLOCK,
    "datetime.date.today": "ctx.today()",
    "time.sleep": "await ctx.sleep(...)",
    "uuid.uuid1": "ctx.uuid()", "uuid.uuid4": "ctx.uuid()",
    "os.urandom": _CHANCE, "secrets.token_hex": _CHANCE, "secrets.token_urlsafe": _CHANCE,
    "secrets.token_bytes": _CHANCE, "secrets.choice": _CHANCE, "secrets.randbelow": _CHANCE,
}  # fmt: skip
"""Calls whose answer is another one on every replay, and what to call."""

_RANDOM: Final = "random."


@dataclass(frozen=True, slots=True)
class Finding:
    """A call that has no place in workflow code."""

    file: str
    line: int
    workflow: str
    call: str
    instead: str

    def __str__(self) -> str:
        return (
            f'{self.file}:{self.line}: workflow "{self.workflow}" calls {self.call}(), and workflow code is replayed: '
            f"use {self.instead}, or do it in a step"
        )


def findings_in(app: App[Any]) -> list[Finding]:
    """What the app's workflows call themselves, and the blocks in their modules that they name.

    Helper functions are not followed, and neither are lambdas and plain functions: those may be steps.
    """
    found: list[Finding] = []
    for workflow in app.workflows:
        seen: set[Any] = set()
        found += _in_function(inspect.unwrap(workflow.fn), workflow.name, seen)
    return found


def _in_function(fn: Callable[..., Any], workflow: str, seen: set[Any]) -> Iterator[Finding]:
    code = getattr(fn, "__code__", None)
    if code is None or code in seen:
        return
    seen.add(code)
    try:
        lines, first = inspect.getsourcelines(fn)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return  # typed in, or a lambda in the middle of an expression
    names = _names_of(fn)
    for node in _workflow_code(tree.body[0]):
        match node:
            case ast.Call(func=func):
                call = _dotted(func, names)
                if (instead := _instead_of(call)) is not None:
                    yield Finding(Path(code.co_filename).name, first + node.lineno - 1, workflow, call, instead)
            case ast.Name(id=name) if _is_block(names.get(name), fn):
                yield from _in_function(names[name], workflow, seen)
            case _:
                pass


def _names_of(fn: Callable[..., Any]) -> Mapping[str, Any]:
    return {**getattr(fn, "__globals__", {}), **inspect.getclosurevars(fn).nonlocals}


def _workflow_code(function: ast.AST) -> Iterator[ast.AST]:
    """What is executed on the workflow's loop: not decorators, lambdas and plain functions."""
    parameters = getattr(function, "args", None)
    first = parameters.args[0].arg if isinstance(parameters, ast.arguments) and parameters.args else ""
    pending: list[ast.AST] = list(getattr(function, "body", ()))
    while pending:
        node = pending.pop()
        match node:
            case ast.Lambda() | ast.FunctionDef():
                continue
            case ast.AsyncFunctionDef(args=ast.arguments(args=arguments)):
                if not arguments or arguments[0].arg != first:
                    continue  # an asynchronous step
                pending += node.body
            case _:
                yield node
                pending += ast.iter_child_nodes(node)


def _is_block(value: Any, beside: Callable[..., Any]) -> bool:
    """Whether it is a function that runs on the workflow's loop: an asynchronous one whose first parameter is the same."""
    if not inspect.iscoroutinefunction(value) or value.__module__ != beside.__module__:
        return False
    return next(iter(inspect.signature(value).parameters), "") == next(iter(inspect.signature(beside).parameters), None)


def _dotted(func: ast.expr, names: Mapping[str, Any]) -> str:
    """The full name of what is called: `datetime.datetime.now`, however it was imported; empty if it is not known."""
    attributes: list[str] = []
    while isinstance(func, ast.Attribute):
        attributes.insert(0, func.attr)
        func = func.value
    if not isinstance(func, ast.Name) or func.id not in names:
        return ""
    return ".".join((_name_of(names[func.id]), *attributes))


def _name_of(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    module = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    return f"{module}.{getattr(value, '__qualname__', '').rpartition('Random.')[2]}"


def _instead_of(call: str) -> str | None:
    if call.startswith(_RANDOM) and call.count(".") == 1:
        return None if call == "random.Random" else _CHANCE
    return INSTEAD.get(call)
