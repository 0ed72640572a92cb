"""An update: a message that wants an answer. Taking it is a wait; the answer is a record of its own.

| state      | history                                       | what happens                                               |
|------------|-----------------------------------------------|------------------------------------------------------------|
| waiting    | nothing; the settle names the wait            | an update wakes the run                                    |
| taken      | the wait's entry, with the message            | handed out, on every replay again: its answer is open      |
| answered   | besides, an entry at `<wait>/answer`          | in replay `respond` does nothing; a reply that was lost with its turn is stored again |
| timed out  | the wait's entry, with an error               | WaitTimeout is raised                                      |
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from pydantic_core import core_schema
from typing_extensions import TypeVar

from durable import codec
from durable.errors import (
    ErrorInfo,
    OperationInsideStep,
    UnansweredUpdate,
    UndecodableHistory,
    UpdateAnswered,
    WaitTimeout,
)
from durable.loop import WorkflowLoop, running_loop
from durable.model.location import check_length
from durable.model.reply import Reply
from durable.ops.operation import Host, KnownOperation, WaitOperation, until

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage

T_co = TypeVar("T_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)


class UpdateRequest(Generic[T_co, R_contra]):
    """An update that waits for its answer. It may be passed on, also out of a branch, and answered there."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id

    @property
    def arg(self) -> T_co:
        """What the caller sent."""
        return self._taken("arg").arg

    @property
    def answered(self) -> bool:
        """Whether it has been answered."""
        return self._taken("answered").answered

    def respond(self, value: R_contra, /) -> None:
        """Answers; the caller gets the value."""
        taken = self._taken("respond")
        text = codec.encode(value, taken.response, what=f'the response to update "{taken.name}"')
        taken.answer(Reply.responding(self.id, text))

    def reject(self, message: str, /) -> None:
        """Refuses; the caller gets the message as an error."""
        self._taken("reject").answer(Reply.rejecting(self.id, message))

    def _taken(self, what: str) -> Taken:
        loop = running_loop()
        taken = loop.requests.get(self.id) if isinstance(loop, WorkflowLoop) else None
        if taken is None:
            raise OperationInsideStep(f"update request .{what}")
        return taken

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UpdateRequest) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f'<update "{self.id}">'

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        """As the result of a branch it is stored by its id: replay hands out the request itself again."""
        return core_schema.no_info_plain_validator_function(
            _handed_out, serialization=core_schema.plain_serializer_function_ser_schema(_id_of)
        )


def _handed_out(value: Any) -> UpdateRequest[Any, Any]:
    return UpdateRequest(str(getattr(value, "id", value)))


def _id_of(request: UpdateRequest[Any, Any]) -> str:
    return request.id


@dataclass(slots=True, eq=False)
class Taken:
    """What stands behind a request in this replay."""

    operation: UpdateOperation
    name: str
    arg: Any
    response: Any
    answered: bool = field(default=False)

    def answer(self, reply: Reply) -> None:
        """Records the answer, unless the history has it."""
        if self.answered:
            raise self.operation.journal.loop.fail(UpdateAnswered(self.name))
        AnswerOperation(self.operation, reply)
        self.answered = True


class UpdateOperation(WaitOperation):
    """`await ctx.updates.next(RENAME)`."""

    __slots__ = ("_name", "_response", "_timeout", "_type", "channels", "task")
    kind = "wait"

    def __init__(self, host: Host, name: str, type_: Any, response: Any, *, timeout: float | None = None) -> None:
        self._name = name
        self._type = type_
        self._response = response
        self._timeout = timeout
        self.channels = (f"update:{name}",)
        loop = host.journal.loop
        self.task = task = asyncio.current_task(loop)
        for taken in loop.requests.values():
            if taken.name == name and not taken.answered and taken.operation.task is task:
                raise loop.fail(UnansweredUpdate(name))
        super().__init__(host, None, name)

    def asked_deadline(self) -> float | None:
        self.immediate = self._timeout is not None and self._timeout <= 0
        return None if self._timeout is None else self.journal.loop.now + max(0.0, self._timeout)

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        return tuple(messages[:1])

    def on_messages(self, messages: Sequence[StoredMessage]) -> None:
        self._arg(messages[0])  # one that cannot be read must not be consumed

    def on_deadline(self) -> tuple[None, ErrorInfo]:
        return None, ErrorInfo(type=WaitTimeout.__qualname__, module=WaitTimeout.__module__, message="")

    def decode(self, entry: Entry) -> UpdateRequest[Any, Any]:
        if not entry.messages:
            raise WaitTimeout(self.location)
        message = entry.messages[0]
        self.journal.loop.requests[message.id] = Taken(self, self._name, self._arg(message), self._response)
        return UpdateRequest(message.id)

    def describe(self) -> str:
        return f'update "{self._name}"{until(self.deadline)}'

    def _arg(self, message: StoredMessage) -> Any:
        try:
            return codec.decode(message.body, self._type)
        except ValueError as error:
            where = f'{self.location} (update "{message.id}")'
            raise UndecodableHistory(where, codec.type_name(self._type), codec.reason_of(error)) from None


class AnswerOperation(KnownOperation):
    """`request.respond(...)`: nothing is awaited; recorded before anything else happens, then told to the caller."""

    __slots__ = ()
    kind = "update"
    answered = True

    def __init__(self, wait: UpdateOperation, reply: Reply) -> None:
        self.journal = journal = wait.journal
        self.future = self.iterator = self.fn = None
        self.scope = wait.scope
        self.location = location = check_length(f"{wait.location}/answer")
        self.text = reply.to_text()
        journal.enter("update", location)
        self._register(journal, self.scope, location)
        del self.scope.unawaited[location]
        if self.record is None:
            journal.park(self)

    @property
    def awaited(self) -> bool:
        return True

    @property
    def dead(self) -> bool:
        return False

    def decode(self, entry: Entry) -> None:
        pass
