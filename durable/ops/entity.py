"""Entities: a call of one, and the loop in which an entity performs its operations one at a time.

| operation                         | history                                         | what happens                                             |
|-----------------------------------|-------------------------------------------------|----------------------------------------------------------|
| `ctx.entity(Cart, key).call(...)` | open entry, then one with the answer            | asked once, under one id; the answer resumes the code    |
| `.signal(...)`                    | an entry that says what was sent                | sent once, and again by a take-over, under one id        |
| an operation, at the entity       | an entry with the message, then `operations~i`  | performed from the state before; what it leaves is recorded together with the answer, and then the answer is sent |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from durable import codec, failures
from durable.errors import ErrorInfo, UndecodableHistory
from durable.journal import Entered, Journal, Scope, unawaited
from durable.model.entity import CALL, SERVED, Answer, Caller, EntityCall, Held, answer_from, call_from, held_from
from durable.model.sending import RecordedSend, recorded_send_from
from durable.ops.dispatched import ABANDONED, DispatchedOperation
from durable.ops.effect import EffectOperation, Stamp
from durable.ops.operation import Host, WaitOperation, until
from durable.ops.progress import LoopRecord, end_tasks, outliving

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.envelope import StartSpec
    from durable.model.message import StoredMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the code wants of an entity."""

    entity: str
    key: str
    operation: str
    title: str
    """As an author writes it: `Cart.add`."""
    arguments: Any
    result: Any
    run_id: str
    start: StartSpec

    def send(self, host_id: str, location: str, stamp: Stamp, call: EntityCall) -> RecordedSend:
        """What is recorded: all that it takes to send it, and to send it again."""
        return RecordedSend(
            to=self.run_id,
            message_id=stamp.message_id(host_id, location),
            name=CALL,
            body=call.to_text(),
            kind="entity",
            start=self.start,
        )


class EntityCallOperation(DispatchedOperation):
    """`await ctx.entity(Cart, key).call(Cart.add, sku)`."""

    __slots__ = ("_asked", "_caller")
    kind = "entity"
    answered_by = "entity"

    def __init__(self, host: Host, asked: Asked) -> None:
        self._asked = asked
        self._caller = host.run_id
        super().__init__(host, None, asked.title, asked.title)
        self._listen()

    def opening(self, stamp: Stamp) -> str:
        caller = Caller(run_id=self._caller, location=self.location)
        call = EntityCall(operation=self._asked.operation, arguments=self._asked.arguments, caller=caller)
        return self._asked.send(self._caller, self.location, stamp, call).to_text()

    def answers(self, opened: Entry, message: StoredMessage) -> bool:
        return _answer(self.location, message).id == recorded_send_from(opened.value).message_id

    def on_messages(self, messages: Sequence[StoredMessage]) -> str | None:
        answer = _answer(self.location, messages[0])
        if answer.error is not None:
            return None
        self.read(answer.value_text, self._asked.result)  # one that cannot be read must not be consumed
        return answer.value_text

    def error_of(self, messages: Sequence[StoredMessage]) -> ErrorInfo | None:
        return _answer(self.location, messages[0]).error

    def decode(self, entry: Entry) -> Any:
        if not entry.messages:
            raise failures.rebuild(entry.error or ABANDONED)
        answer = _answer(self.location, entry.messages[0])
        if answer.error is not None:
            raise failures.entity_failed(self._asked.entity, self._asked.key, self._asked.operation, answer.error)
        return self.read(answer.value_text, self._asked.result)

    def describe(self) -> str:
        return f'{self._asked.title} of entity "{self._asked.key}"'


class EntitySignalOperation(EffectOperation):
    """`await ctx.entity(Cart, key).signal(Cart.clear)`."""

    __slots__ = ("_asked", "_call", "_sender")
    kind = "send"

    def __init__(self, host: Host, asked: Asked, *, delay: float | None, timer: str | None) -> None:
        self._asked = asked
        self._sender = host.run_id
        self._call = EntityCall(operation=asked.operation, arguments=asked.arguments, delay=delay, timer=timer)
        super().__init__(host, None, asked.title, asked.title)

    def record_text(self, stamp: Stamp) -> str:
        return self._asked.send(self._sender, self.location, stamp, self._call).to_text()

    def decode(self, entry: Entry) -> None:
        pass


def _answer(location: str, message: StoredMessage) -> Answer:
    try:
        return answer_from(message.body)
    except ValueError as problem:
        raise UndecodableHistory(location, "the answer of an entity", codec.reason_of(problem)) from None


# At the entity


@dataclass(frozen=True, slots=True)
class Received:
    """A call that has come."""

    call: EntityCall
    message_id: str
    arrived_at: float


class NextCallOperation(WaitOperation):
    """The next call, or None when a timer is due before one comes."""

    __slots__ = ("_due_at",)
    kind = "wait"
    channels = (f"entity:{CALL}",)

    def __init__(self, host: Host, due_at: float | None) -> None:
        self._due_at = due_at
        super().__init__(host, None, CALL)

    def asked_deadline(self) -> float | None:
        self.immediate = False
        return self._due_at

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        return tuple(messages[:1])

    def on_messages(self, messages: Sequence[StoredMessage]) -> None:
        self._received(messages[0])

    def decode(self, entry: Entry) -> Received | None:
        return self._received(entry.messages[0]) if entry.messages else None

    def describe(self) -> str:
        return f"a call{until(self.deadline)}"

    def _received(self, message: StoredMessage) -> Received:
        try:
            return Received(call_from(message.body), message.id, message.arrived_at)
        except ValueError as problem:
            raise UndecodableHistory(self.location, "a call of an entity", codec.reason_of(problem)) from None


class HeldRecord(LoopRecord):
    """What an entity holds before the next operation."""

    __slots__ = ()

    def __init__(self, journal: Journal, scope: Scope, iteration: int, text: str | None) -> None:
        super().__init__(journal, scope, SERVED, f"~{iteration}", text, Held)

    def decode(self, entry: Entry) -> Held:
        try:
            return held_from(entry.value)
        except ValueError as problem:
            raise UndecodableHistory(self.location, "what an entity holds", codec.reason_of(problem)) from None


class AnsweredRecord(HeldRecord, EffectOperation):
    """The same, with the answer to the operation before: sent as soon as it is recorded."""

    __slots__ = ()

    def record_text(self, stamp: Stamp) -> str:  # noqa: ARG002 - it is always the same
        return self.text or ""


Perform = Callable[[Held, Received | None], Awaitable[Held]]
"""Performs what has come, or the timer that is due; gives what the entity holds afterwards."""


async def serve(host: Host, first: Held, perform: Perform) -> NoReturn:
    """Performs operations for ever. Every one is sealed by the record of what it has left, so history keeps its size."""
    journal = host.journal
    scope = journal.enter("loop", SERVED)
    journal.explicit(scope, SERVED)
    iteration = journal.progress.get(SERVED, 0)
    held: Held = await outliving(HeldRecord(journal, scope, iteration, None)) if iteration else first
    while True:
        held = await _one(host, scope.within(f"{SERVED}[{iteration}]/"), held, perform)
        iteration += 1
        record = HeldRecord if held.answer is None else AnsweredRecord
        held = await outliving(record(journal, scope, iteration, held.to_text()))


async def _one(host: Host, scope: Scope, held: Held, perform: Perform) -> Held:
    journal = host.journal
    created = journal.loop.created
    with Entered(scope):
        timer = held.next_timer
        due_at = None if timer is None else held.timers[timer].due_at
        held = await perform(held, await NextCallOperation(host, due_at))
    await end_tasks(journal, scope, created)
    if scope.unawaited:
        journal.loop.fail(unawaited(scope))
    return held
