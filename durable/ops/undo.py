"""How a step is undone: what its record says about it, and the call that a rollback makes of that.

| when                    | what happens                                                                           |
|-------------------------|----------------------------------------------------------------------------------------|
| the step is called      | the undo function must be found by its name and take the result and the step's arguments |
|                         | and be in a package of the app's own                                                   |
| before its body runs    | the arguments are encoded; what cannot be stored fails the step                        |
| its result is recorded  | function and arguments are part of that entry                                          |
| the run is rolled back  | the function is looked up, and called with the result and the arguments                |
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from durable import codec
from durable.errors import LimitExceeded, Misuse, UndecodableHistory
from durable.model.entry import Compensation, Entry
from durable.model.limits import BLOB_BYTES
from durable.ops.arguments import arguments_from, arguments_text, signature_of

if TYPE_CHECKING:
    from durable.model.packages import Packages


class UndoMissing(Misuse):
    """The function that undoes a step is not in the deployed code."""

    def __init__(self, location: str, function: str) -> None:
        super().__init__(
            f'the step at "{location}" is undone by {function}, which the deployed code does not have. Deploy code that '
            "has it under this name: the rollback goes on where it is."
        )


class UndoRefused(Misuse):
    """What is recorded as the undo of a step is not a function of the app: somebody else has written the record."""

    def __init__(self, location: str, function: str, packages: Packages) -> None:
        super().__init__(
            f'the step at "{location}" is undone by {function}, and a rollback calls functions of the app\'s own packages '
            f"only ({packages}). Was the record changed by hand? If the function is yours, add its package: App(..., "
            "packages=[...])."
        )


def check_own_undo(undo: Callable[..., Any], packages: Packages) -> None:
    """Raises TypeError for a function that a rollback would refuse to call."""
    reference = _reference(undo)
    if not packages.own(reference.partition(":")[0]):
        raise TypeError(
            f"Step.undo() takes a function of the app's own packages ({packages}), because a rollback calls what the table "
            f"names; {reference} is not. Wrap it in a function beside the workflow, or name its package: "
            "App(..., packages=[...])."
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
        signature_of(undo).bind(None, *args, **kwargs)
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
    text = arguments_text(undo, args, kwargs, after=1)
    if (size := len(text.encode())) > BLOB_BYTES:
        raise LimitExceeded(
            f"what {name} is called with", size, BLOB_BYTES, instead="Let the undo read what it needs by an id."
        )
    return Compensation(_reference(undo), text)


def call_of(entry: Entry, compensation: Compensation, packages: Packages) -> Callable[[], Any]:
    """The call that undoes what the entry records; raises a Misuse where the deployed code cannot make it, or must not."""
    if not packages.own(compensation.fn.partition(":")[0]):
        raise UndoRefused(entry.location, compensation.fn, packages)
    undo = _found(compensation.fn)
    if undo is None:
        raise UndoMissing(entry.location, compensation.fn)
    if _reference(undo) != compensation.fn:  # `shop.app:os.system`: what a module of ours has imported is not ours
        raise UndoRefused(entry.location, compensation.fn, packages)
    try:
        result = codec.decode(entry.value, codec.input_type(undo, after=0))
        args, kwargs = arguments_from(compensation.args, undo, after=1)
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
