"""A callback: an outside system is given a token, and the run waits for what it reports with it.

| state     | history                              | what happens                                                        |
|-----------|--------------------------------------|---------------------------------------------------------------------|
| new       | nothing                              | the step `name/submit` hands the token to the outside system        |
| submitted | `name/submit`; the settle names it   | waits; an answer that has come before counts                        |
| beating   | the same                             | at the end of a silence the task row tells of heartbeats, or not    |
| done      | besides, an entry with the answer    | the result is returned, or CallbackFailed raised                    |
| unfit     | besides, an entry with both          | the result does not fit its type: CallbackFailed says so            |
| timed out | besides, an entry with an error      | WaitTimeout is raised, after a silence HeartbeatTimeout             |

There is no open entry: the token follows from the run and the location, and dispatching it is the step's business.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from durable import codec
from durable.errors import (
    CallbackFailed,
    ErrorInfo,
    HeartbeatTimeout,
    InvalidInput,
    UndecodableHistory,
    WaitTimeout,
)
from durable.model.callback import CallbackAnswer, answer_from
from durable.model.links import SUBMISSION, answer_id
from durable.ops.blocks import run_within
from durable.ops.operation import DELIVERED, Host, WaitOperation, until
from durable.ops.step import StepOperation

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.task import TaskRow
    from durable.options import Step


class CallbackOperation(WaitOperation):
    """`await ctx.callback("payment", submit, Receipt, timeout="1 day")`."""

    __slots__ = (
        "_began",
        "_begun",
        "_ends",
        "_heartbeat",
        "_host",
        "_name",
        "_policy",
        "_result",
        "_submit",
        "_timeout",
        "channels",
        "place",
    )
    kind = "callback"

    def __init__(
        self,
        host: Host,
        name: str,
        submit: Callable[[str], object],
        result: Any,
        *,
        timeout: float,
        heartbeat: float | None,
        policy: Step,
    ) -> None:
        self._host = host
        self._name = name
        self._submit = submit
        self._result = result
        self._timeout = timeout
        self._heartbeat = heartbeat
        self._policy = policy
        self._begun = False
        self._began = self._ends = 0.0
        super().__init__(host, None, name)
        self.channels = (f"callback:{self.location}",)
        submitted = self.journal.records.get(self.location + SUBMISSION)
        self.place = host.links.place_of(self.location, None if submitted is None else submitted.entry)
        """Tells it from what stood here before a retry of the run."""

    @property
    def token(self) -> str:
        """What the outside system answers with."""
        return self._host.links.callback_token(self.location, self.place, self._timeout)

    def __await__(self) -> Generator[Any, Any, Any]:
        if self.journal.loop.closing is not None:
            return super().__await__()
        if self._begun:
            raise RuntimeError(f'the operation "{self.location}" is awaited twice; keep its value instead')
        self._begun = True
        del self.scope.unawaited[self.key]
        return self._submit_and_wait().__await__()

    async def _submit_and_wait(self) -> Any:
        inside = self.scope.within(f"{self.location}/")
        try:
            await run_within(
                self.journal, inside, lambda: SubmitOperation(self._host, self, self._policy, self._submit)
            )
        except BaseException:
            self.future = DELIVERED  # nobody waits for an answer
            raise
        self.scope.unawaited[self.key] = self.kind
        return await self._answer()

    @types.coroutine
    def _answer(self) -> Generator[Any, Any, Any]:
        return (yield from super().__await__())

    # Waiting

    def before_waiting(self) -> None:
        super().before_waiting()
        self._began = self.journal.loop.now
        self._ends = max(self._began + self._timeout, self.deadline or 0.0)

    def asked_deadline(self) -> float:
        self.immediate = False
        return self.journal.loop.now + min(self._timeout, self._heartbeat or self._timeout)

    @property
    def beats(self) -> bool:
        """Whether signs of life put its deadline off; they are in the task row that has the id `place`."""
        return self._heartbeat is not None

    def put_off(self, row: TaskRow | None, now: float) -> float | None:
        """Until when it waits, as the row says; None: what it waits for is given up."""
        if self._heartbeat is None:
            return None
        beat = None if row is None else row.heartbeat_at
        alive = max(self._began, beat or 0.0)
        deadline = min(self._ends, alive + self._heartbeat)
        return deadline if deadline > now else None

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        wanted = answer_id(self._host.links.born, self.place)
        return next(((message,) for message in messages if message.id == wanted), ())

    def on_messages(self, messages: Sequence[StoredMessage]) -> None:
        self._read(messages[0])

    def error_of(self, messages: Sequence[StoredMessage]) -> ErrorInfo | None:
        answer = self._read(messages[0])
        if answer.error is not None:
            return answer.error
        try:
            codec.decode(_text(answer), self._result)
        except ValueError as problem:
            # Kept: an answer that was not taken would leave the run waiting, and no other answer can follow it.
            unfit = InvalidInput("the result", f"not {codec.type_name(self._result)}: {codec.reason_of(problem)}")
            return ErrorInfo(type=InvalidInput.__qualname__, module=InvalidInput.__module__, message=str(unfit))
        return None

    def on_deadline(self) -> tuple[None, ErrorInfo]:
        silent = self._heartbeat is not None and (self.deadline or 0.0) < self._ends
        kind = HeartbeatTimeout if silent else WaitTimeout
        return None, ErrorInfo(type=kind.__qualname__, module=kind.__module__, message="")

    def decode(self, entry: Entry) -> Any:
        if not entry.messages:
            silent = entry.error is not None and entry.error.matches(HeartbeatTimeout)
            raise HeartbeatTimeout(self.location) if silent else WaitTimeout(self.location)
        answer = self._read(entry.messages[0])
        if entry.error is not None:
            raise CallbackFailed(self._name, entry.error, retryable=answer.retryable)
        return self.read(_text(answer), self._result)

    def describe(self) -> str:
        return f'callback "{self._name}"{until(self.deadline)}'

    def _read(self, message: StoredMessage) -> CallbackAnswer:
        try:
            return answer_from(message.body)
        except ValueError as problem:
            raise UndecodableHistory(self.location, "the answer to a callback", codec.reason_of(problem)) from None


def _text(answer: CallbackAnswer) -> str:
    return to_json(answer.value).decode()


class SubmitOperation(StepOperation):
    """Hands the token to the outside system. What the function returns is of no interest."""

    __slots__ = ("_callback",)

    def __init__(self, host: Host, callback: CallbackOperation, policy: Step, fn: Callable[[str], object]) -> None:
        self._callback = callback
        super().__init__(host, "submit", policy, fn)

    @property
    def call(self) -> Callable[[], Any]:
        return partial(self._function, self._callback.token)

    @property
    def arguments(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        return (self._callback.token,), {}

    def encode(self, value: Any) -> str:  # noqa: ARG002 - it may be anything
        return "null"

    def decode(self, entry: Entry) -> None:
        if entry.error is not None:
            super().decode(entry)


def check_submit(submit: object) -> Callable[[str], object]:
    """Gives the function back; TypeError for what is none."""
    if not callable(submit):
        raise TypeError(f"ctx.callback(name, submit, ...) takes a function of the token, not {type(submit).__name__}")
    return cast("Callable[[str], object]", submit)
