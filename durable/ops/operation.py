"""What every operation is: a location claimed when it is called, and a result delivered when it is awaited."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Coroutine, Generator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from durable.errors import ErrorInfo, Misuse

if TYPE_CHECKING:
    from durable.journal import Journal, Record, Scope
    from durable.model.entry import Entry, Kind
    from durable.model.message import StoredMessage


class Host(Protocol):
    """The execution, as far as operations need it."""

    @property
    def journal(self) -> Journal: ...
    @property
    def run_id(self) -> str: ...


class Operation(Coroutine[Any, Any, Any]):
    """A coroutine to asyncio; to the engine a command, from when it is awaited until its future is done.

    | state    | future  | in the history | the engine's part                          |
    |----------|---------|----------------|--------------------------------------------|
    | called   | None    | -              | none                                       |
    | replayed | pending | yes            | none: the result comes in order of record  |
    | parked   | pending | no             | `take()` hands it over; perform and record |
    | dead     | done    | -              | none: it has its result, or was cancelled  |
    """

    __slots__ = ("context", "created", "fn", "future", "iterator", "journal", "location", "record", "scope")
    kind: ClassVar[Kind]
    mark = ""
    context: contextvars.Context
    """A copy of the context in which it was awaited; only there when it has no result in the history."""

    def __init__(self, host: Host, name: str | None, derived: str, fn: str | None = None) -> None:
        self.journal = journal = host.journal
        self.future: asyncio.Future[Any] | None = None
        self.iterator: Generator[Any, Any, Any] | None = None
        self.fn = fn
        self.scope = scope = journal.enter(f"{self.kind} {name or derived}")
        self.location = location = journal.name(scope, name, derived)
        self._register(journal, scope, location)

    def _register(self, journal: Journal, scope: Scope, key: str) -> None:
        scope.unawaited[key] = self.kind
        journal.created = self.created = journal.created + 1
        self.record: Record | None = journal.records.get(key)
        if self.record is not None:
            journal.claim(self, self.record)

    @property
    def key(self) -> str:
        """Unique within the run: the key of the entry that will hold its result."""
        return self.location + self.mark

    @property
    def seq(self) -> int:
        """Its place in the order of calls."""
        return self.created

    @property
    def branches(self) -> str | None:
        """Keys of the joins and races around it, for its entry."""
        return self.scope.branches

    @property
    def awaited(self) -> bool:
        """Whether the code has come to wait for it."""
        return self.future is not None

    @property
    def dead(self) -> bool:
        """Whether nobody wants a result any more: it has one, or it was cancelled."""
        return self.future is not None and self.future.done()

    @property
    def facts(self) -> Sequence[Entry]:
        """Entries about it that are no results: failed attempts, open remote attempts."""
        return () if self.record is None else self.record.facts

    def decode(self, entry: Entry) -> Any:
        """The value that the entry holds for user code; raises what it holds as an error."""
        raise NotImplementedError

    def before_waiting(self) -> None:
        """Called when it is awaited and has no result in the history."""

    def resolve(self, entry: Entry) -> bool:
        """Hands the recorded result to the code that waits; False when nobody does."""
        future = self.future
        assert future is not None
        if future.done():
            return False
        try:
            future.set_result(self.decode(entry))
        except Misuse as misuse:
            self.journal.loop.fail(misuse)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  it is the outcome
            future.set_exception(error)
        return True

    def __await__(self) -> Generator[Any, Any, Any]:
        journal = self.journal
        loop = journal.loop
        if loop.closing is not None:
            journal.refuse_while_closing()
            return asyncio.Future[Any](loop=loop).__await__()
        if self.future is not None:
            raise RuntimeError(f'the operation "{self.location}" is awaited twice; keep its value instead')
        del self.scope.unawaited[self.location + self.mark]
        self.future = future = asyncio.Future[Any](loop=loop)
        record = self.record
        if record is None or record.entry is None:
            self.context = contextvars.copy_context()
            self.before_waiting()
            journal.park(self)
        elif journal.order[journal.position] is record and not loop.ready and not loop.cancelled_something:
            # It is next in order and nothing else can run: the loop would be idle, so it need not be gone through.
            journal.position += 1
            loop.pass_time(record.entry.at)
            loop.burst = 0
            self.resolve(record.entry)
        return future.__await__()

    # What asyncio needs to run it as a task

    def send(self, value: Any) -> Any:
        if self.iterator is None:
            self.iterator = self.__await__()
        return self.iterator.send(value)

    def throw(self, *error: Any) -> Any:
        if self.iterator is not None:
            return self.iterator.throw(*error)
        self._drop()
        raise error[0]

    def close(self) -> None:
        if self.iterator is not None:
            self.iterator.close()
        else:
            self._drop()

    def _drop(self) -> None:
        """Its task was cancelled before it began: called and given up, not forgotten."""
        if self.future is None:
            self.future = asyncio.Future[Any](loop=self.journal.loop)
            self.future.cancel()
            self.scope.unawaited.pop(self.key, None)

    def __repr__(self) -> str:
        return f'<{self.kind} "{self.location}">'


class WaitOperation(Operation):
    """An operation that waits for messages, for a moment, or for whichever comes first."""

    __slots__ = ("deadline", "immediate")
    deadline: float | None
    """Seconds since 1970; fixed when it is awaited. One that the last settle recorded stands."""
    immediate: bool
    """Whether the code asked for no time at all: a buffered message still beats it."""
    channels: tuple[str, ...] = ()
    """What it takes messages from; none for a timer, `*` for every signal."""

    def before_waiting(self) -> None:
        self.deadline = self.journal.recorded_deadline(self.location, self.kind, self.asked_deadline())

    def asked_deadline(self) -> float | None:
        """The deadline that the code asks for now."""
        raise NotImplementedError

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:  # noqa: ARG002, PLR6301
        """Those of the available messages, given in order of arrival, that it would consume; none: it is not ready."""
        return ()

    def on_messages(self, messages: Sequence[StoredMessage]) -> str | None:  # noqa: ARG002, PLR6301
        """The value text of an entry that consumes these messages."""
        return None

    def on_deadline(self) -> tuple[str | None, ErrorInfo | None]:  # noqa: PLR6301
        """Value text and error of the entry when the deadline comes first."""
        return None, None

    def describe(self) -> str:
        """What it waits for, for people."""
        raise NotImplementedError


class KnownOperation(Operation):
    """An operation whose value is known: it only has to be recorded."""

    __slots__ = ("text",)
    text: str | None
    """The value, as JSON text."""
    answered: ClassVar[bool] = False
    """Whether the code has gone on with the value already: record it before anything else, also after the end."""


def qualified_name(fn: Any) -> str | None:
    """The name under which entries know a function: looks through partials, and at the class of a callable object."""
    while isinstance(fn, functools.partial):
        fn = fn.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    name = getattr(fn, "__qualname__", None)
    return name if name is not None else type(fn).__qualname__


def plain_name(fn: Any) -> str:
    """The name that an operation takes from its function."""
    return (qualified_name(fn) or "").rpartition(".")[2]


def until(deadline: float | None) -> str:
    """The end of a sentence about a wait: ` until 2026-11-30 10:00:00 UTC`, or nothing."""
    if deadline is None:
        return ""
    return f" until {datetime.fromtimestamp(deadline, UTC):%Y-%m-%d %H:%M:%S} UTC"
