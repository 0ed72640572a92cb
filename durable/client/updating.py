"""Updates: messages that want an answer, checked before they are stored, and waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from pydantic import ValidationError
from typing_extensions import TypeVar

from durable import codec
from durable.channels import Update
from durable.client import reading
from durable.client.part import ClientPart
from durable.errors import (
    InvalidInput,
    RunEnded,
    UndecodableHistory,
    UnknownWorkflow,
    UpdateRejected,
    UpdateTimeout,
)
from durable.model.duration import Duration, optional_seconds
from durable.model.envelope import Deliver
from durable.model.ids import check_message_id, check_name
from durable.model.reply import Reply, reply_from

if TYPE_CHECKING:
    from durable.model.run import Run

A = TypeVar("A")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class UpdateHandle(Generic[R_co]):
    """An update that a run has accepted."""

    __slots__ = ("_client", "_response", "id", "name", "run_id")

    def __init__(self, client: Updating, run_id: str, name: str, id: str, response: Any) -> None:
        self._client = client
        self._response = response
        self.run_id = run_id
        self.name = name
        self.id = id

    def result(self, *, timeout: Duration | None = None) -> R_co:
        """The response, as soon as the run has answered. It is kept for seven days.

        Raises:
            UpdateRejected: The run refused.
            RunEnded: The run has ended without an answer.
            RunBlocked: The run needs new code or a person before it can answer.
            UpdateTimeout: There is no answer yet; the update stays accepted.
        """
        allowed = optional_seconds(timeout, "result(timeout=...)")
        reply = self._client.reply(self.run_id, self.id, allowed)
        if reply is None:
            raise UpdateTimeout(self.run_id, self.name, self.id, allowed or 0.0)
        if reply.rejected is not None:
            raise UpdateRejected(self.run_id, self.name, reply.rejected)
        try:
            return codec.decode(reply.value_text, self._response)
        except ValueError as problem:
            where = f'response to update "{self.id}"'
            raise UndecodableHistory(where, codec.type_name(self._response), codec.reason_of(problem)) from None

    def __repr__(self) -> str:
        return f'<update "{self.name}" {self.id} of run "{self.run_id}">'


class Updating(ClientPart):
    """The part of the client that asks runs and waits for their answers."""

    @overload
    def update(
        self, run_id: str, update: Update[A, R], arg: A, /, *, timeout: Duration | None = None, id: str | None = None
    ) -> R: ...
    @overload
    def update(
        self, run_id: str, name: str, arg: object, /, *, timeout: Duration | None = None, id: str | None = None
    ) -> Any: ...
    def update(
        self, run_id: str, update: Any, arg: Any, /, *, timeout: Duration | None = None, id: str | None = None
    ) -> Any:
        """Sends an update and gives the response: `send_update` and `result` in one; raises what they raise."""
        return self.send_update(run_id, update, arg, id=id).result(timeout=timeout)

    @overload
    def send_update(
        self, run_id: str, update: Update[A, R], arg: A, /, *, id: str | None = None
    ) -> UpdateHandle[R]: ...
    @overload
    def send_update(self, run_id: str, name: str, arg: object, /, *, id: str | None = None) -> UpdateHandle[Any]: ...
    def send_update(self, run_id: str, update: Any, arg: Any, /, *, id: str | None = None) -> UpdateHandle[Any]:
        """Sends an update; when this returns, it is durably accepted. The same `id` is taken once and has one answer.

        Raises:
            RunNotFound, RunEnded: Nothing was sent.
            InvalidInput: The argument does not fit the update's type; nothing was sent.
            UpdateRejected: The workflow's validator refuses it; nothing was sent.
            LimitExceeded: The argument is too large.
        """
        name = check_name("update name", update) if isinstance(update, str) else update.name
        handle = self.update_handle(run_id, update, self.ports.new_id() if id is None else id)
        run = self._open_run(run_id)
        text = self._checked(run, update, name, arg)
        self.ports.runs.send(Deliver(run_id=run.id, id=handle.id, name=name, body=text, kind="update"))
        return handle

    @overload
    def update_handle(self, run_id: str, update: Update[Any, R], id: str, /) -> UpdateHandle[R]: ...
    @overload
    def update_handle(self, run_id: str, name: str, id: str, /) -> UpdateHandle[Any]: ...
    def update_handle(self, run_id: str, update: Any, id: str, /) -> UpdateHandle[Any]:
        """A handle to an update that was sent before under this id."""
        response: Any = codec.UNTYPED if isinstance(update, str) else update.response
        name: str = update if isinstance(update, str) else update.name
        return UpdateHandle[Any](self, run_id, name, check_message_id(id), response)

    def reply(self, run_id: str, update_id: str, timeout: float | None) -> Reply | None:
        """The answer to an update as it is stored, waited for at most `timeout` seconds; see `UpdateHandle.result`."""
        run = self.get(run_id)
        lineage = run.lineage or run.id  # it may be answered by a run that continues the one it was sent to

        def look() -> Reply | None:
            text = self.ports.store.get_reply(lineage, update_id)
            if text is not None:
                return reply_from(text)
            run = self.get(run_id)
            if not run.ended:
                reading.raise_unless_open(self.ports, run)
                return None
            text = self.ports.store.get_reply(lineage, update_id)  # it may have been answered between the two looks
            if text is None:
                raise RunEnded(run_id, run.status)
            return reply_from(text)

        return self._until(run_id, look, timeout)

    def _checked(self, run: Run, update: Update[Any, Any] | str, name: str, arg: object) -> str:
        """The argument as JSON text, after the workflow's validator has seen it."""
        what = f'the argument of update "{name}"'
        if isinstance(update, str):
            text = codec.encode(arg, codec.UNTYPED, what=what)
        else:
            text = codec.encode(codec.validated(arg, update.type, what=what), update.type, what=what)
        try:
            type_, check = self.app.find(run.workflow, run.version).validators.get(name, (None, None))
        except UnknownWorkflow:
            return text  # this client's code does not have the run's version, nor its validators
        if check is None:
            return text
        try:
            check(codec.parsed(text, type_, what=what))
        except InvalidInput:
            raise
        except ValueError as refusal:
            reason = codec.reason_of(refusal) if isinstance(refusal, ValidationError) else str(refusal)
            raise UpdateRejected(run.id, name, reason) from refusal
        return text
