"""Children: runs that a run starts, and waits for or not.

| operation          | history                                   | what happens                                             |
|--------------------|-------------------------------------------|----------------------------------------------------------|
| `ctx.child`        | open entry, then one with the child's end | started once; its end resumes the code                   |
| `ctx.start_child`  | an entry that names the child             | started once, and again by a take-over, under one id     |
| `handle.result()`  | an entry with the child's end             | as any wait; the child goes on when it is cancelled      |
| `handle.cancel()`  | an entry that names the child             | the child is asked to end                                |
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import TypeAdapter

from durable import codec, failures
from durable.errors import ErrorInfo, UndecodableHistory
from durable.model.ending import Ended, ended_from
from durable.model.ids import derived_id, generation_id
from durable.model.run import TERMINAL, Cut
from durable.ops.dispatched import ABANDONED, DispatchedOperation
from durable.ops.effect import EffectOperation, Stamp
from durable.ops.operation import Host, WaitOperation

if TYPE_CHECKING:
    from durable.definitions import Workflow
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage

SHOWN_CHARS: Final = 1_000
"""Longer outputs are not held twice."""

ParentClose = Literal["cancel", "abandon"]

DECISION: Final = "again:"
"""Begins the ids of messages that tell, after a retry, which run stands for the child: one that goes on, or has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStart:
    """All that it takes to start a child: the value of the entry that records it."""

    id: str
    again: str | None = None
    """The id to use after a retry, if what was started before is not to be adopted or waited for."""
    workflow: str
    version: str
    input: str | None
    """JSON text."""
    tags: tuple[str, ...] = ()
    close: ParentClose = "cancel"
    """What becomes of it when the parent ends first."""
    lane: str | None = None
    """The lane that it needs a slot of."""
    location: str = field(default="")
    """Where the parent waits for it; empty where nobody ever will."""

    def to_text(self) -> str:
        """The JSON text that is recorded."""
        return _ADAPTER.dump_json(self, exclude_defaults=True).decode()


_ADAPTER: TypeAdapter[ChildStart] = TypeAdapter(ChildStart)


def lives_of(child: str, cuts: Iterable[Cut]) -> Sequence[str]:
    """The ids under which a child may have been started, the first and one for each retry of its parent; the latest last."""
    return [child, *(generation_id(child, f"r{until}") for until in sorted(cut.until for cut in cuts))]


def child_start_from(text: str | None) -> ChildStart:
    """Reads what `to_text` wrote."""
    return _ADAPTER.validate_json(text or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOrder:
    """What the code asks for: a workflow, its input, and how."""

    workflow: Workflow[Any, Any]
    input: str | None
    id: str | None
    tags: tuple[str, ...]
    close: ParentClose
    lane: str | None = None

    def id_at(self, parent: str, location: str) -> str:
        """The child's id, as long as it is not started anew."""
        return self.id or derived_id(parent, location)

    def start(self, parent: str, location: str, stamp: Stamp) -> ChildStart:
        """What is recorded."""
        child = self.id_at(parent, location)
        return ChildStart(
            id=child,
            again=None if stamp.retried is None else generation_id(child, f"r{stamp.retried}"),
            workflow=self.workflow.name,
            version=self.workflow.version,
            input=self.input,
            tags=self.tags,
            close=self.close,
            lane=self.lane,
            location=location,
        )


class ChildOperation(DispatchedOperation):
    """`await ctx.child(workflow, input)`."""

    __slots__ = ("_order", "_parent")
    kind = "child"
    answered_by = "child"

    def __init__(self, host: Host, order: ChildOrder) -> None:
        self._parent = host.run_id
        self._order = order
        super().__init__(host, None, order.workflow.name, order.workflow.name)
        self._listen()

    def opening(self, stamp: Stamp) -> str:
        return self._order.start(self._parent, self.location, stamp).to_text()

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        opened = self.open
        return () if opened is None else _end_that_counts(self.location, child_start_from(opened.value).id, messages)

    def on_messages(self, messages: Sequence[StoredMessage]) -> str | None:
        return _value(self.location, messages[0], self._order.workflow)

    def error_of(self, messages: Sequence[StoredMessage]) -> ErrorInfo | None:
        return _ended(self.location, messages[0]).error

    def decode(self, entry: Entry) -> Any:
        if not entry.messages:
            raise failures.rebuild(entry.error or ABANDONED)
        return _result(self.location, entry, self._order.workflow)

    def describe(self) -> str:
        return f'child "{self.location}" (run {self._order.id_at(self._parent, self.location)})'


class StartChildOperation(EffectOperation):
    """`await ctx.start_child(workflow, input)`: gives a handle."""

    __slots__ = ("_handle", "_order", "_parent")
    kind = "start"

    def __init__(self, host: Host, order: ChildOrder, handle: Any) -> None:
        self._parent = host.run_id
        self._order = order
        self._handle = handle
        super().__init__(host, None, order.workflow.name, order.workflow.name)

    def record_text(self, stamp: Stamp) -> str:
        return self._order.start(self._parent, self.location, stamp).to_text()

    def decode(self, entry: Entry) -> Any:
        if entry.error is not None:
            raise failures.rebuild(entry.error)
        start = child_start_from(entry.value)
        return self._handle(start.id, self.location, self._order.workflow)


def _no_handle(*_: object) -> None:
    pass


class StartDetachedOperation(StartChildOperation):
    """Starts a run that tells nobody of its end, so that a run which starts others forever hears no more of them."""

    __slots__ = ()

    def __init__(self, host: Host, order: ChildOrder) -> None:
        super().__init__(host, order, _no_handle)

    def record_text(self, stamp: Stamp) -> str:
        return replace(self._order.start(self._parent, self.location, stamp), location="", again=None).to_text()


class ChildResultOperation(WaitOperation):
    """`await handle.result()`."""

    __slots__ = ("_child", "_shared", "_workflow", "channels")
    kind = "child"

    def __init__(self, host: Host, child: str, started_at: str, workflow: Workflow[Any, Any]) -> None:
        self._child = child
        self._workflow = workflow
        self.channels = (f"child:{started_at}",)
        self._shared: asyncio.Future[Any] = asyncio.Future(loop=host.journal.loop)
        super().__init__(host, None, f"result of {started_at.rpartition('/')[2]}", workflow.name)

    def asked_deadline(self) -> None:
        self.immediate = False

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        return _end_that_counts(self.location, self._child, messages)

    def on_messages(self, messages: Sequence[StoredMessage]) -> str | None:
        return _value(self.location, messages[0], self._workflow)

    def error_of(self, messages: Sequence[StoredMessage]) -> ErrorInfo | None:
        return _ended(self.location, messages[0]).error

    def decode(self, entry: Entry) -> Any:
        try:
            value = _result(self.location, entry, self._workflow)
        except Exception as error:
            self._shared.set_exception(error)
            self._shared.exception()  # nobody need ask for it again
            raise
        self._shared.set_result(value)
        return value

    @property
    def given_up(self) -> bool:
        """Whether the code that waited was cancelled before the child ended."""
        return self.dead and not self._shared.done()

    async def again(self) -> Any:
        """The same result, for code that asks for it once more."""
        return await asyncio.shield(self._shared)

    def describe(self) -> str:
        return f'child "{self._child}"'


class CloseChildOperation(EffectOperation):
    """`await handle.cancel()`."""

    __slots__ = ("_child",)
    kind = "close"

    def __init__(self, host: Host, child: str, started_at: str) -> None:
        self._child = child
        super().__init__(host, None, f"cancel {started_at.rpartition('/')[2]}")

    def record_text(self, stamp: Stamp) -> str:  # noqa: ARG002 - it is always the same
        return codec.encode(self._child, str)

    def decode(self, entry: Entry) -> None:
        pass


def _end_that_counts(location: str, child: str, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    """The end of the child, or of the run that stands in its place since a retry: what others have come to is no answer."""
    decided = [message for message in messages if message.id.startswith(DECISION)]
    if decided:
        decision = _ended(location, decided[-1])
        if decision.status in TERMINAL:
            return (decided[-1],)
        child = decision.run_id
    ends = (message for message in messages if message not in decided)
    return next(((message,) for message in ends if _ended(location, message).lineage == child), ())


def _ended(location: str, message: StoredMessage) -> Ended:
    try:
        return ended_from(message.body)
    except ValueError as error:
        raise UndecodableHistory(location, "the end of a child", codec.reason_of(error)) from None


def _value(location: str, message: StoredMessage, workflow: Workflow[Any, Any]) -> str | None:
    """The value of the entry, for people: the code reads the message, which the entry holds too."""
    end = _ended(location, message)
    if end.status != "completed":
        return None
    _output(location, end, workflow)  # one that cannot be read must not be consumed
    return end.output if end.output is not None and len(end.output) <= SHOWN_CHARS else None


def _output(location: str, end: Ended, workflow: Workflow[Any, Any]) -> Any:
    try:
        return codec.decode(end.output, workflow.output_type)
    except ValueError as error:
        raise UndecodableHistory(location, codec.type_name(workflow.output_type), codec.reason_of(error)) from None


def _result(location: str, entry: Entry, workflow: Workflow[Any, Any]) -> Any:
    end = _ended(location, entry.messages[0])
    if end.status == "completed":
        return _output(location, end, workflow)
    raise failures.child_failed(end.run_id, end.status, end.error or _without_error(end))


def _without_error(end: Ended) -> ErrorInfo:
    return ErrorInfo(type="Exception", module="builtins", message=f"it ended as {end.status}")
