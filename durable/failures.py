"""Exceptions to records and back, so that a failure looks the same live and on every replay."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_json

from durable.codec.comparison import same
from durable.errors import (
    CallbackFailed,
    ChildCancelled,
    ChildFailed,
    ChildTimedOut,
    DurableError,
    EntityFailed,
    ErrorInfo,
    Fenced,
    Misuse,
    RunDead,
    RunFailed,
    RunTimedOut,
    RunWasCancelled,
    StepFailed,
    StoreUnavailable,
)
from durable.model.limits import ERROR_CAUSES, ERROR_DATA_BYTES, ERROR_MESSAGE_CHARS

if TYPE_CHECKING:
    from durable.model.entry import Entry

F = TypeVar("F", bound=DurableError)

_OWN: Final = ("name", "attempts", "error", "kind", "run_id", "status", "entity", "key", "operation")
"""Attributes of StepFailed, ChildFailed and EntityFailed; an error of the user's that has these too keeps its own in `error.data`."""


def record(exc: BaseException) -> ErrorInfo:
    """What is kept of an exception: class, message, JSON-able attributes, and the chain of its causes."""
    try:
        return _record(exc, ERROR_CAUSES)
    except Exception as problem:  # noqa: BLE001 - a hostile exception must not be worse than an ordinary one
        kind = type(exc)
        return ErrorInfo(
            type=kind.__qualname__, module=kind.__module__, message=f"(looking at it raised {type(problem).__name__})"
        )


def step_failed(name: str, attempts: int, error: ErrorInfo, kind: str = "exhausted") -> StepFailed:
    """The exception that a failed step raises.

    Where the class of the step's own error is already loaded, the exception is also an instance of it, so that
    `except CardDeclined` works. Nothing is imported and the class's `__init__` is not called: its attributes are the
    recorded ones.
    """
    return _failed(StepFailed, error, name=name, attempts=attempts, error=error, kind=kind)


def child_failed(run_id: str, status: str, error: ErrorInfo) -> ChildFailed:
    """The exception that the end of a child raises which did not complete.

    It is also an instance of the class of the error that ended the child, as `step_failed` says; where a step's failure
    did, of the class of that step's error.
    """
    cause = error.cause if error.matches(StepFailed) and error.cause is not None else error
    match status:
        case "cancelled":
            return _failed(ChildCancelled, cause, run_id=run_id, status=status, error=error)
        case "timed_out":
            return _failed(ChildTimedOut, cause, run_id=run_id, status=status, error=error)
        case _:
            return _failed(ChildFailed, cause, run_id=run_id, status=status, error=error)


def entity_failed(entity: str, key: str, operation: str, error: ErrorInfo) -> EntityFailed:
    """The exception that a failed operation of an entity raises at its caller; also an instance of the class of its error.

    Where a step's failure, or that of another entity, ended the operation, of the class of the error behind that.
    """
    cause = error
    while (cause.matches(StepFailed) or cause.matches(EntityFailed)) and cause.cause is not None:
        cause = cause.cause
    return _failed(EntityFailed, cause, entity=entity, key=key, operation=operation, error=error)


def error_from(text: str | None) -> ErrorInfo | None:
    """An error that was stored apart, from its JSON text."""
    return None if text is None else TypeAdapter(ErrorInfo).validate_json(text)


def ended_without_error(status: str, reason: str | None) -> ErrorInfo:
    """Stands for the error of a run that ended by somebody's decision."""
    kind = {"cancelled": RunWasCancelled, "timed_out": RunTimedOut, "dead": RunDead}.get(status, RunFailed)
    return ErrorInfo(type=kind.__qualname__, module=kind.__module__, message=reason or f"it ended as {status}")


def _failed(base: type[F], cause: ErrorInfo, /, **own: Any) -> F:
    failed = _bare(_mixed(base, cause))
    if failed is None:
        return base(*own.values())
    failed.__dict__.update(_attributes(cause))
    failed.__dict__.update(own)
    failed.args = tuple(own.values())
    return failed


def rebuild(error: ErrorInfo) -> BaseException:
    """An exception of the recorded class, or a DurableError with its text where that class is not loaded."""
    data = _attributes(error)
    if error.matches(StepFailed) and error.cause is not None:
        return step_failed(str(data.get("name")), int(data.get("attempts", 1)), error.cause, str(data.get("kind")))
    if error.matches(ChildFailed) or error.matches(ChildCancelled) or error.matches(ChildTimedOut):
        cause = error.cause or ErrorInfo(type="Exception", module="builtins", message=error.message)
        return child_failed(str(data.get("run_id")), str(data.get("status")), cause)
    if error.matches(EntityFailed) and error.cause is not None:
        return entity_failed(str(data.get("entity")), str(data.get("key")), str(data.get("operation")), error.cause)
    if error.matches(CallbackFailed) and error.cause is not None:
        return CallbackFailed(str(data.get("name")), error.cause, retryable=bool(data.get("retryable")))
    cls = _loaded(error.module, error.type)
    rebuilt = None if cls is None else _bare(cls)
    if rebuilt is None:
        return DurableError(str(error))
    rebuilt.__dict__.update(data)
    rebuilt.args = (error.message,)
    return rebuilt


ORIGIN: Final = "__durable_origin__"
"""Where an exception keeps order and key of the entry that it comes from; a name that is never recorded."""


def mark_origin(error: BaseException, entry: Entry) -> None:
    """Notes which entry the exception was read from."""
    error.__dict__[ORIGIN] = (entry.order, entry.key)


def origins(error: BaseException, at_most: int) -> tuple[str, ...]:
    """Keys of the entries that an exception goes back to, the earliest first: its own, those of its causes and of a group's members."""
    found: set[tuple[tuple[int, int], str]] = set()
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        current = left.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        origin = current.__dict__.get(ORIGIN)
        if origin is not None:
            found.add(origin)
            continue  # what it was raised from lies before it
        left += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            left += cast("BaseExceptionGroup[BaseException]", current).exceptions
    return tuple(key for _, key in sorted(found)[:at_most])


def _attributes(error: ErrorInfo) -> dict[str, Any]:
    data: object = error.data
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _record(exc: BaseException, causes: int) -> ErrorInfo:
    # Of these the class may be a mixed one; what it stands for is in `error`.
    match exc:
        case StepFailed():
            return _told(StepFailed, exc, exc.error, name=exc.name, attempts=exc.attempts, kind=exc.kind)
        case ChildFailed():
            return _told(ChildFailed, exc, exc.error, run_id=exc.run_id, status=exc.status)
        case EntityFailed():
            return _told(EntityFailed, exc, exc.error, entity=exc.entity, key=exc.key, operation=exc.operation)
        case CallbackFailed():
            return _told(CallbackFailed, exc, exc.error, name=exc.name, retryable=exc.retryable)
        case _:
            pass
    cause = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
    return ErrorInfo(
        type=type(exc).__qualname__,
        module=type(exc).__module__,
        message=_message(exc),
        data=_data(exc),
        cause=_record(cause, causes - 1) if cause is not None and causes > 0 else None,
    )


def _told(kind: type[DurableError], exc: DurableError, cause: ErrorInfo, /, **data: Any) -> ErrorInfo:
    """An error that was told to the run about something else, which has failed with `cause`."""
    return ErrorInfo(type=kind.__qualname__, module=kind.__module__, message=_message(exc), data=data, cause=cause)


def _message(exc: BaseException) -> str:
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the error
        text = f"<{type(exc).__qualname__} without a printable message>"
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= ERROR_MESSAGE_CHARS else f"{text[:ERROR_MESSAGE_CHARS]}... (cut)"


def _data(exc: BaseException) -> dict[str, Any] | None:
    kept: dict[str, Any] = {}
    room = ERROR_DATA_BYTES
    for name, value in vars(exc).items():
        if name.startswith("__"):
            continue
        try:
            text = to_json(value, inf_nan_mode="null")
        except (PydanticSerializationError, ValueError, RecursionError):
            continue
        if len(text) <= room and same(value, from_json(text)):
            kept[name] = value
            room -= len(text)
    return kept or None


# Classes that are also StepFailed or ChildFailed

_NEVER_MIXED: Final = (
    StepFailed, ChildFailed, EntityFailed, Misuse, Fenced, StoreUnavailable, StopIteration, StopAsyncIteration,
)  # fmt: skip
"""A future refuses the two that end iterations, and the interpreter gives them a meaning of its own.

What another run or a step of it met there, be it a misuse that had blocked a child, is for this run a failure like any other:
the engine must not take it for this run's own.
"""

_mixtures: dict[tuple[type[BaseException], type[BaseException]], type[Any]] = {}


def _mixed(kind: type[F], error: ErrorInfo) -> type[F]:
    cls = _loaded(error.module, error.type)
    if cls is None or not issubclass(cls, Exception) or issubclass(cls, _NEVER_MIXED):
        return kind
    try:
        return _mixtures[kind, cls]
    except KeyError:
        mixture = _mixtures[kind, cls] = _mixture(kind, cls)
        return mixture


def _mixture(kind: type[F], cls: type[Exception]) -> type[F]:
    body = {
        "__init__": kind.__init__,
        "__str__": kind.__str__,
        "__repr__": kind.__str__,
        "__setattr__": Exception.__setattr__,
        # In logs and tracebacks it is called what the user calls it.
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        # Plain attributes, so that properties of the same names in the user's class do not stand in the way.
        **dict.fromkeys(_OWN),
    }
    try:
        return cast("type[F]", type(cls.__name__, (kind, cls), body))
    except Exception:  # noqa: BLE001 - layout conflicts, metaclasses, __init_subclass__: then it stays a plain one
        return kind


def _loaded(module: str, qualname: str) -> type[BaseException] | None:
    found: object = sys.modules.get(module)
    for part in qualname.split("."):
        # Not getattr: a module's own __getattr__ might import something.
        members: Mapping[str, object] = getattr(found, "__dict__", {})
        found = members.get(part)
    if isinstance(found, type) and issubclass(found, Exception | asyncio.CancelledError):
        return found
    return None


_HEAP_TYPE: Final = 1 << 9
"""Set in `__flags__` of classes that Python code made (Py_TPFLAGS_HEAPTYPE)."""


def _bare(cls: type[Any]) -> Any:
    """An instance without calling any `__init__` or `__new__` of the user's; None where the class does not allow that."""
    builtin: Any = next(base for base in cls.__mro__ if not base.__flags__ & _HEAP_TYPE)
    try:
        return builtin.__new__(cls)
    except TypeError:  # exception groups want arguments
        return None
