"""What every operation is: a location claimed when it is called, and a result delivered when it is awaited."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Protocol

from durable import codec, failures
from durable.errors import ErrorInfo, Misuse, UnawaitedOperation, UndecodableHistory
from durable.journal import Journal, Record, Scope
from durable.loop import WorkflowLoop, running_loop

if TYPE_CHECKING:
    from durable.model.entry import Entry, Kind
    from durable.model.links import Links
    from durable.model.message import StoredMessage


class Host(Protocol):
    """The execution, as far as operations need it."""

    journal: Journal
    run_id: str
    links: Links


class Delivered:
    """Stands for the future of an operation that needs none: its result was there when it was awaited, or nobody waits."""

    def done(self) -> bool:
        """Always."""
        return True


DELIVERED: Final = Delivered()

METHODS: Final = frozenset({"step", "join", "race", "map", "try_map", "loop", "retrying", "wait_until", "sleep"})
"""Kinds that are called as the context's method that makes them."""


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
    waits: ClassVar[bool] = False
    """Whether it waits for a moment or a message, so that a settle names it."""
    may_be_late: ClassVar[bool] = False
    """Whether its result may be recorded though it has been cancelled: others are recorded one at a time, when idle."""
    context: contextvars.Context
    """A copy of the context in which it was awaited; only there when it has no result in the history."""

    def __init__(self, host: Host, name: str | None, derived: str, fn: str | None = None) -> None:
        self.journal = journal = host.journal
        self.future: asyncio.Future[Any] | Delivered | None = None
        self.iterator: Generator[Any, Any, Any] | None = None
        self.fn = fn
        self.scope = scope = journal.enter(self.kind, name or derived)
        self.location = location = scope.derived(derived) if name is None else journal.explicit(scope, name)
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

    def note(self, entry: Entry) -> None:
        """Adds a fact that has just been recorded: a failed attempt, an open remote attempt."""
        if self.record is None:
            self.record = Record()
        self.record.facts.append(entry)

    def decode(self, entry: Entry) -> Any:
        """The value that the entry holds for user code; raises what it holds as an error."""
        raise NotImplementedError

    def read(self, text: str | None, declared: Any) -> Any:
        """A recorded value; raises UndecodableHistory where it does not fit the type that the code declares now."""
        try:
            return codec.decode(text, declared)
        except ValueError as problem:
            raise UndecodableHistory(self.location, codec.type_name(declared), codec.reason_of(problem)) from None

    def before_waiting(self) -> None:
        """Called when it is awaited and has no result in the history."""

    def resolve(self, entry: Entry) -> bool:
        """Hands the recorded result to the code that waits; False when nobody does."""
        future = self.future
        if not isinstance(future, asyncio.Future) or future.done():
            return False
        try:
            future.set_result(self.decode(entry))
        except Misuse as misuse:
            self.journal.loop.fail(misuse)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  it is the outcome
            failures.mark_origin(error, entry)
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
        record = self.record
        if record is None or (entry := record.entry) is None:
            self.future = asyncio.Future[Any](loop=loop)
            self.context = contextvars.copy_context()
            self.before_waiting()
            journal.park(self)
        elif journal.order[journal.position] is record and not loop.ready and not loop.cancelled_something:
            # It is next in order and nothing else can run: the loop would be idle, so it need not be gone through.
            journal.position += 1
            loop.pass_time(entry.at)
            loop.burst = 0
            return self._at_once(entry)
        else:
            self.future = asyncio.Future[Any](loop=loop)
        return self.future.__await__()

    def _at_once(self, entry: Entry) -> Generator[Any, Any, Any]:
        self.future = DELIVERED
        try:
            return _returned(self.decode(entry))
        except Misuse as misuse:
            self.journal.loop.fail(misuse)
            return asyncio.Future[Any](loop=self.journal.loop).__await__()
        except Exception as error:
            failures.mark_origin(error, entry)
            raise

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
            self.future = DELIVERED
            self.scope.unawaited.pop(self.key, None)

    if not TYPE_CHECKING:  # to a type checker it has no other attributes

        def __getattr__(self, name: str) -> Any:
            return _taken_for_its_value(type(self), self.kind, self.location, name)

    def __repr__(self) -> str:
        return f'<{self.kind} "{self.location}">'


class WaitOperation(Operation):
    """An operation that waits for messages, for a moment, or for whichever comes first."""

    __slots__ = ("deadline", "immediate")
    waits = True
    deadline: float | None
    """Seconds since 1970; fixed when it is awaited. One that the last settle recorded stands."""
    immediate: bool
    """Whether the code asked for no time at all: a buffered message still beats it."""
    channels: tuple[str, ...] = ()
    """What it takes messages from; none for a timer, `*` for every signal."""

    def before_waiting(self) -> None:
        self.deadline = self.journal.waits.deadline(self, self.asked_deadline())

    def asked_deadline(self) -> float | None:
        """The deadline that the code asks for now."""
        raise NotImplementedError

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:  # noqa: ARG002 - for those that take some
        """Those of the available messages, given in order of arrival, that it would consume; none: it is not ready."""
        return ()

    def on_messages(self, messages: Sequence[StoredMessage]) -> str | None:  # noqa: ARG002 - for those that take some
        """The value text of an entry that consumes these messages."""
        return None

    def error_of(self, messages: Sequence[StoredMessage]) -> ErrorInfo | None:  # noqa: ARG002 - for those that may bring one
        """The error of an entry that consumes these messages."""
        return None

    def on_deadline(self) -> tuple[str | None, ErrorInfo | None]:
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


class Block(Coroutine[Any, Any, Any]):
    """A coroutine around other operations; it claims its name when it is called, and must be awaited like any other."""

    __slots__ = ("_coro", "_kind", "_location", "_scope")

    def __init__(
        self, host: Host, kind: str, name: str, start: Callable[[Journal, Scope, str], Coroutine[Any, Any, Any]]
    ) -> None:
        journal = host.journal
        self._kind = kind
        self._location = ""
        self._scope = scope = journal.enter(kind, name)
        location = journal.explicit(scope, name)
        self._coro = start(journal, scope, location)
        self._location = location
        scope.unawaited[location] = kind

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._begun().__await__()

    def send(self, value: Any) -> Any:
        return self._begun().send(value)

    def throw(self, *error: Any) -> Any:
        return self._begun().throw(*error)

    def close(self) -> None:
        self._begun().close()

    def __del__(self) -> None:
        if self._location and self._location in self._scope.unawaited:
            self._coro.close()  # the error names it better than a "never awaited" warning

    @property
    def cr_frame(self) -> Any:
        """As of the coroutine itself, for whoever looks whether it has begun."""
        return getattr(self._coro, "cr_frame", None)

    @property
    def cr_await(self) -> Any:
        """As of the coroutine itself."""
        return getattr(self._coro, "cr_await", None)

    def _begun(self) -> Coroutine[Any, Any, Any]:
        self._scope.unawaited.pop(self._location, None)
        return self._coro

    if not TYPE_CHECKING:  # to a type checker it has no other attributes

        def __getattr__(self, name: str) -> Any:
            return _taken_for_its_value(type(self), self._kind, self._location, name)

    def __repr__(self) -> str:
        return f'<{self._kind} "{self._location}">'


def _taken_for_its_value(cls: type, kind: str, location: str, name: str) -> NoReturn:
    """Refuses an attribute that only the value can have, and stops the loop, so that no `except` hides it.

    Names of Python's and asyncio's own protocols are asked for by trial: those are just not there.
    """
    loop = running_loop()
    here = isinstance(loop, WorkflowLoop)
    if not here or name.startswith(("_", "cr_", "gi_", "ag_")) or hasattr(cls, name):  # or a slot that is empty yet
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
    call = f"ctx.{kind}(...)" if kind in METHODS else "..."
    raise loop.fail(
        UnawaitedOperation(f'{kind} "{location}" was not awaited, so it has no {name} yet: write (await {call}).{name}')
    )


def _returned(value: Any) -> Generator[Any, Any, Any]:
    """An awaitable's iterator that ends with the value and never yields."""
    return value
    yield


def until(deadline: float | None) -> str:
    """The end of a sentence about a wait: ` until 2026-11-30 10:00:00 UTC`, or nothing."""
    if deadline is None:
        return ""
    try:
        return f" until {datetime.fromtimestamp(deadline, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # beyond the year 9999
        return f" until {deadline:g} s after 1970"
