"""Entities, as callers see them: asked and waited for, signalled, looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, cast, overload

from typing_extensions import TypeVar

from durable import codec, failures
from durable.client import reading
from durable.client.part import ClientPart
from durable.context.entities import delay_of, timer_name
from durable.entities import EntityDefinition, definition_of
from durable.errors import RunEnded, UndecodableHistory
from durable.model.duration import Duration, optional_seconds
from durable.model.entity import CALL, Answer, Caller, EntityCall, answer_from, held_from, is_held, workflow_of
from durable.model.envelope import Deliver
from durable.model.ids import check_message_id

if TYPE_CHECKING:
    from durable.context import Context

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")


class ClientEntityRef(Generic[E]):
    """One entity. Its operations are the class's methods (`Cart.add`)."""

    __slots__ = ("_client", "_definition", "_delay", "_id", "_key", "_timeout", "_timer")

    def __init__(
        self, client: EntityCalls, definition: EntityDefinition, key: str, *, timeout: float | None, id: str | None,
        delay: float | None = None, timer: str | None = None,
    ) -> None:  # fmt: skip
        definition.run_id(key)
        self._client = client
        self._definition = definition
        self._key = key
        self._timeout = timeout
        self._id = id
        self._delay = delay
        self._timer = timer

    @overload
    def call(
        self, op: Callable[Concatenate[E, Context, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, op: Callable[Concatenate[E, Context, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call(self, op: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Has the operation performed, in order with all others of the key, and gives its result.

        Raises:
            InvalidInput: An argument does not fit; nothing was sent.
            EntityFailed: The operation failed and has changed nothing. Also an instance of the class of its error.
            RunEnded: The entity was ended by somebody.
            RunBlocked: The entity needs new code; the operation stays accepted.
            TimeoutError: There is no answer yet; the operation stays accepted.
        """
        if self._delay is not None:
            raise TypeError("what is delayed is a signal: client.entity(...).delayed(...).signal(...)")
        operation = self._definition.operation(op)
        call = EntityCall(operation=operation.name, arguments=operation.arguments(args, kwargs), caller=Caller())
        run_id, message_id = self._send(call)
        answer = self._client.answer(run_id, message_id, self._timeout)
        if answer is None:
            raise TimeoutError(
                f'{operation.title} of entity "{self._key}" has no answer after {self._timeout:g} s. It stays accepted: ask '
                f'again with the same id, client.entity(..., id="{message_id}"), instead of calling anew.'
            )
        if answer.error is not None:
            raise failures.entity_failed(self._definition.name, self._key, operation.name, answer.error)
        try:
            return codec.decode(answer.value_text, operation.result)
        except ValueError as problem:
            where = f"the result of {operation.title}"
            raise UndecodableHistory(where, codec.type_name(operation.result), codec.reason_of(problem)) from None

    @overload
    def signal(
        self, op: Callable[Concatenate[E, Context, P], object], /, *args: P.args, **kwargs: P.kwargs
    ) -> None: ...
    @overload
    def signal(self, op: Callable[Concatenate[E, P], object], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    def signal(self, op: Any, /, *args: Any, **kwargs: Any) -> None:
        """Has the operation performed and does not wait for it; when this returns, it is durably accepted.

        Raises:
            InvalidInput: An argument does not fit; nothing was sent.
            RunEnded: The entity was ended by somebody.
        """
        operation = self._definition.operation(op)
        arguments = operation.arguments(args, kwargs)
        self._send(EntityCall(operation=operation.name, arguments=arguments, delay=self._delay, timer=self._timer))

    def delayed(self, delay: Duration, /, *, id: str | None = None) -> ClientEntityRef[E]:
        """The same entity, whose signals are performed after the delay; one of the same id replaces one that waits."""
        return ClientEntityRef(
            self._client, self._definition, self._key, timeout=self._timeout, id=self._id, delay=delay_of(delay),
            timer=timer_name(id),
        )  # fmt: skip

    def state(self) -> E:
        """The state that the last operation has left; it does not wait for those that are on their way."""
        return cast("E", self._client.entity_state(self._definition, self._key))

    def _send(self, call: EntityCall) -> tuple[str, str]:
        return self._client.ask(self._definition, self._key, call, self._id)


class EntityCalls(ClientPart):
    """The part of the client that asks entities."""

    def entity(
        self, cls: type[E], key: str, /, *, timeout: Duration | None = None, id: str | None = None
    ) -> ClientEntityRef[E]:
        """The entity of this class and key: any key's entity is there, in its first state.

        Args:
            cls: The class, registered with `@app.entity`.
            key: 1 to 256 bytes of printable characters.
            timeout: How long a call waits for its answer.
            id: Names the next call or signal: the same id is performed once, and every call of it has the same answer.
        """
        definition = definition_of(cls)
        self.app.newest(workflow_of(definition.name))
        allowed = optional_seconds(timeout, "client.entity(timeout=...)")
        message_id = None if id is None else check_message_id(id)
        return ClientEntityRef[E](self, definition, key, timeout=allowed, id=message_id)

    def ask(self, definition: EntityDefinition, key: str, call: EntityCall, id: str | None) -> tuple[str, str]:
        """Sends a call; gives the ids of the entity's run and of the message. `ClientEntityRef` is what to use."""
        run_id, message_id = definition.run_id(key), id or self.ports.new_id()
        run = self.ports.store.get(run_id)
        if run is not None and run.ended:
            raise RunEnded(run_id, run.status)
        start = definition.start(key, self._headers(None))
        self.ports.runs.send(
            Deliver(run_id=run_id, id=message_id, name=CALL, kind="entity", body=call.to_text(), start=start)
        )
        return run_id, message_id

    def answer(self, run_id: str, message_id: str, timeout: float | None) -> Answer | None:
        """What an entity has answered, waited for at most `timeout` seconds. `ClientEntityRef` is what to use."""

        def look() -> Answer | None:
            text = self.ports.store.get_reply(run_id, message_id)
            if text is not None:
                return answer_from(text)
            run = self.ports.store.get(run_id)
            if run is None:
                return None  # the call is on its way, and the entity begins with it
            if not run.ended:
                reading.raise_unless_open(self.ports, run)
                return None
            text = self.ports.store.get_reply(run_id, message_id)  # it may have been answered between the two looks
            if text is None:
                raise RunEnded(run_id, run.status)
            return answer_from(text)

        return self._until(run_id, look, timeout)

    def entity_state(self, definition: EntityDefinition, key: str) -> Any:
        """What an entity holds, as its class has it now. `ClientEntityRef` is what to use."""
        run_id = definition.run_id(key)
        run = self.ports.store.get(run_id)
        if run is None:
            return definition.cls()
        held = [entry for entry in reading.history(self.ports, run_id) if is_held(run, entry)]
        if not held:
            return definition.cls()
        return definition.model(held_from(max(held, key=lambda entry: int(entry.mark[1:])).value))
