"""Stand-ins for step bodies: scripted answers and a list of the calls."""

from __future__ import annotations

import inspect
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from urllib.parse import unquote

from durable.model.location import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Self

    from durable.app import App
    from durable.engine.steps import Performed

R = TypeVar("R")


class Mock(Generic[R]):
    """Answers calls from a script, in the order in which it was written; the last answer is given again and again.

    Example:
        ```python
        env.mock(charge).raises(TimeoutError).returns("receipt-1")  # fails once, then succeeds for good
        ```
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        """Positional and keyword arguments of every call, failed ones included."""
        self._answers: list[Callable[..., Any]] = []
        self._next = 0

    def returns(self, *values: R) -> Self:
        """Each value answers one call; the last one stays."""
        for value in values:
            self._answers.append(_returning(value))
        return self

    def raises(self, error: BaseException | type[BaseException], /) -> Self:
        """The next call in the script raises `error`."""
        self._answers.append(_raising(error))
        return self

    def runs(self, fn: Callable[..., R], /) -> Self:
        """The next call in the script runs `fn` with the step's arguments."""
        self._answers.append(fn)
        return self

    def fresh(self) -> Mock[R]:
        """Another one with the same script, at its beginning."""
        copy = Mock[R](self.name)
        copy._answers = self._answers
        return copy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        if not self._answers:
            raise AssertionError(
                f'the mock of "{self.name}" has no answer: call .returns(), .raises() or .runs() on it'
            )
        answer = self._answers[min(self._next, len(self._answers) - 1)]
        self._next += 1
        return answer(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<mock of {self.name}, called {len(self.calls)} times>"


def _returning(value: Any) -> Callable[..., Any]:
    def answer(*args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        return value

    return answer


def _raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    def answer(*args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise error

    return answer


class Mocks:
    """The stand-ins of one environment, found by the function that a step calls or by the step's name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Mock[Any]] = {}
        self._by_function: list[tuple[Callable[..., Any], Mock[Any]]] = []
        self._asked_for: set[str] = set()
        self._steps: set[str] = set()

    def add(self, target: Callable[..., Any] | str) -> Mock[Any]:
        """A stand-in without an answer yet; a later one for the same target takes the earlier one's place."""
        if isinstance(target, str):
            mock = self._by_name[escape(target)] = Mock[Any](target)
            return mock
        mock = Mock[Any](getattr(target, "__qualname__", repr(target)))
        self._by_function.insert(0, (target, mock))
        return mock

    def fresh(self) -> Mocks:
        """The same stand-ins, none of them called yet."""
        copy = Mocks()
        copy._by_name = {name: mock.fresh() for name, mock in self._by_name.items()}
        copy._asked_for, copy._steps = self._asked_for, self._steps
        copy._by_function = [(function, mock.fresh()) for function, mock in self._by_function]
        return copy

    def check_names(self, app: App[Any]) -> None:
        """Raises AssertionError for a stand-in that no step has asked for and whose name the app's code does not have.

        A step that this test did not come to is fine; a name that is in no module of the workflows is a typing error.
        """
        unused = [mock for name, mock in self._by_name.items() if name not in self._asked_for]
        if not unused:
            return
        known = names_in(workflow.fn for workflow in app.workflows)
        if lost := [mock.name for mock in unused if not is_known(mock.name, known)]:
            ran = ", ".join(sorted(map(unquote, self._steps))) or "none"
            names = ", ".join(f'"{name}"' for name in lost)
            raise AssertionError(f"env.mock({names}) stands for no step: no step has this name (steps that ran: {ran})")

    def find(self, operation: Performed) -> Mock[Any] | None:
        """The stand-in of a step, if there is one."""
        function = _unwrapped(operation.call)
        for target, mock in self._by_function:
            if _unwrapped(target) == function:
                return mock
        own_name, _, _ = operation.name.partition("#")  # a derived name that repeats is numbered: charge#2
        self._steps.add(own_name)
        self._asked_for.update((operation.name, own_name))
        return self._by_name.get(operation.name) or self._by_name.get(own_name)


def names_in(functions: Iterable[Callable[..., Any]]) -> set[str]:
    """The names and texts in the code of these functions and of those that they name, as far as that can be followed."""
    found: set[str] = set()
    waiting: list[object] = list(functions)
    seen: set[int] = set()
    while waiting:
        function = waiting.pop()
        function = getattr(function, "fn", function)  # of a registered workflow or remote step
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        texts = _texts(function.__code__)
        found |= texts
        around = inspect.getclosurevars(function)
        named = [*around.nonlocals.values(), *(function.__globals__.get(text) for text in texts)]
        modules = [value for value in named if isinstance(value, ModuleType)]
        waiting += [*named, *(getattr(module, text, None) for module in modules for text in texts)]
    return found


def is_known(name: str, known: Collection[str]) -> bool:
    """Whether it is one of the texts, or begins or ends with one that may be part of an f-string."""
    own, _, _ = name.partition("#")
    return own in known or any(
        len(text) > 1 and not text.isidentifier() and (own.startswith(text) or own.endswith(text)) for text in known
    )


def _texts(code: CodeType) -> set[str]:
    found = {code.co_name, *code.co_names, *code.co_varnames, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, str):
            found.add(constant)
        elif isinstance(constant, CodeType):
            found |= _texts(constant)
        elif isinstance(constant, tuple):
            found.update(part for part in cast("tuple[object, ...]", constant) if isinstance(part, str))
    return found


def _unwrapped(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function
