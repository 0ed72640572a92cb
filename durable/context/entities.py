"""Entities: state behind a key, changed by one operation at a time; how workflows ask them, and how they work."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, cast, overload

from typing_extensions import TypeVar

from durable import codec, failures
from durable.context.part import Op, Part
from durable.entities import EntityDefinition, EntityOperation, definition_of
from durable.errors import InvalidInput, LimitExceeded, Misuse
from durable.model.duration import Duration, seconds
from durable.model.entity import READ, Answer, EntityCall, Held, Timer, data_of
from durable.model.ids import check_name
from durable.model.limits import PAYLOAD_BYTES
from durable.ops.entity import Asked, EntityCallOperation, EntitySignalOperation, Received, serve

if TYPE_CHECKING:
    from durable.context.context import Context
    from durable.execution import Execution

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")


class EntityRef(Generic[E]):
    """One entity. Its operations are the class's methods (`Cart.add`); a context parameter comes right after self."""

    __slots__ = ("_definition", "_delay", "_execution", "_key", "_run_id", "_timer")

    def __init__(
        self, execution: Execution, definition: EntityDefinition, key: str, *, delay: float | None = None,
        timer: str | None = None,
    ) -> None:  # fmt: skip
        self._execution = execution
        self._definition = definition
        self._key = key
        self._run_id = definition.run_id(key)
        self._delay = delay
        self._timer = timer

    @overload
    def call(
        self, op: Callable[Concatenate[E, Context, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[T]: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    @overload
    def call(self, op: Callable[Concatenate[E, Context, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    def call(self, op: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Has the operation performed, in order with all others of the key, and gives its result.

        Raises:
            InvalidInput: An argument does not fit; nothing was sent.
            EntityFailed: The operation failed and has changed nothing. Also an instance of the class of its error.
        """
        operation = self._definition.operation(op)
        return self._called(operation.name, operation.title, operation.arguments(args, kwargs))

    @overload
    def signal(
        self, op: Callable[Concatenate[E, Context, P], object], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[None]: ...
    @overload
    def signal(self, op: Callable[Concatenate[E, P], object], /, *args: P.args, **kwargs: P.kwargs) -> Op[None]: ...
    def signal(self, op: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Has the operation performed and does not wait for it; returns once that is sure to reach the entity.

        Raises:
            InvalidInput: An argument does not fit; nothing was sent.
        """
        operation = self._definition.operation(op)
        asked = self._asked(operation.name, operation.title, operation.arguments(args, kwargs))
        return EntitySignalOperation(self._execution, asked, delay=self._delay, timer=self._timer)

    def delayed(self, delay: Duration, /, *, id: str | None = None) -> EntityRef[E]:
        """The same entity, whose signals are performed after the delay; one of the same id replaces one that waits."""
        return EntityRef(self._execution, self._definition, self._key, delay=delay_of(delay), timer=timer_name(id))

    def state(self) -> Op[E]:
        """The entity's state, after all that was asked of it before."""
        return self._called(READ, f"{self._definition.name}.state", None)

    def _called(self, operation: str, title: str, arguments: Any) -> Any:
        if self._delay is not None:
            raise TypeError("what is delayed is a signal: ctx.entity(...).delayed(...).signal(...)")
        if self._run_id == self._execution.run_id:
            raise RuntimeError(
                f'an operation of entity "{self._key}" calls its own entity and would wait for itself for ever: '
                "call the method on self, or signal it"
            )
        return EntityCallOperation(self._execution, self._asked(operation, title, arguments))

    def _asked(self, operation: str, title: str, arguments: Any) -> Asked:
        definition = self._definition
        return Asked(
            entity=definition.name,
            key=self._key,
            operation=operation,
            title=title,
            arguments=arguments,
            result=definition.result_of(operation),
            run_id=self._run_id,
            start=definition.start(self._key, self._execution.info.headers),
        )


def delay_of(delay: Duration) -> float:
    """Seconds."""
    return seconds(delay, "delayed(delay)", minimum=0.0)


def timer_name(id: str | None) -> str | None:
    """Gives the id of a delayed signal back, or refuses it."""
    return None if id is None else check_name("id of a delayed signal", id)


class Entities(Part):
    """The part of the context that asks entities, and tells an operation which entity it belongs to."""

    _entity_key: str | None = None

    def entity(self, cls: type[E], key: str, /) -> EntityRef[E]:
        """The entity of this class and key: any key's entity is there, in its first state."""
        return EntityRef(self._execution, definition_of(cls), key)

    @property
    def entity_key(self) -> str:
        """The key of the entity whose operation this is; RuntimeError elsewhere."""
        if self._entity_key is None:
            raise RuntimeError("ctx.entity_key is there for operations of an entity, not for workflows")
        return self._entity_key

    async def _perform_operations(self, definition: EntityDefinition, key: str) -> NoReturn:
        self._entity_key = key
        performing = _Performing(cast("Context", self), definition)
        await serve(self._execution, definition.first(), performing.perform)


def serving(definition: EntityDefinition) -> Callable[[Context, str], Any]:
    """The code of the workflow that holds an entity of this class."""

    async def entity(ctx: Context, key: str) -> None:
        await ctx._perform_operations(definition, key)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - it is no author's business

    return entity


class _Performing:
    """Performs one operation after the other; what fails leaves everything as it was."""

    def __init__(self, ctx: Context, definition: EntityDefinition) -> None:
        self._ctx = ctx
        self._definition = definition

    async def perform(self, held: Held, received: Received | None) -> Held:
        held = replace(held, answer=None)
        if received is None:
            return await self._fire(held)
        call = received.call
        if call.delay is not None:
            timer = Timer(due_at=received.arrived_at + call.delay, operation=call.operation, arguments=call.arguments)
            later = replace(held, timers={**held.timers, call.timer or received.message_id: timer})
            return self._unless_too_large(later, held, call)
        return await self._attempt(held, call, received.message_id)

    async def _fire(self, held: Held) -> Held:
        name = held.next_timer
        assert name is not None, "a deadline is that of a timer"
        timer = held.timers[name]
        left = replace(held, timers={other: timers for other, timers in held.timers.items() if other != name})
        return await self._attempt(left, EntityCall(operation=timer.operation, arguments=timer.arguments), name)

    async def _attempt(self, held: Held, call: EntityCall, message_id: str) -> Held:
        try:
            state, value = await self._result(held, call)
        except Misuse:
            raise
        except asyncio.CancelledError as error:
            if self._ctx._execution.cancelled:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the same
                raise
            return self._failed(held, call, message_id, error)  # of a task that the operation has cancelled itself
        except Exception as error:  # noqa: BLE001 - it is the outcome
            return self._failed(held, call, message_id, error)
        answer = None
        if call.caller is not None:
            answer = Answer(id=message_id, caller=call.caller, value=value, of_state=call.operation == READ)
        done = replace(held, version=self._definition.version, state=state, answer=answer)
        return self._unless_too_large(done, held, call, message_id)

    async def _result(self, held: Held, call: EntityCall) -> tuple[Any, Any]:
        """State and value, as JSON data."""
        model = self._definition.model(held)
        if call.operation == READ:
            state = self._definition.data(model)
            return state, None
        operation = self._definition.operations.get(call.operation)
        if operation is None:
            raise InvalidInput(f"{self._definition.name}.{call.operation}", "the entity has no such operation any more")
        args, kwargs = _given(operation, call.arguments)
        context = (self._ctx,) if operation.takes_context else ()
        value = operation.fn(model, *context, *args, **kwargs)
        if inspect.isawaitable(value):
            value = await value
        text = codec.encode(value, operation.result, what=f"the result of {operation.title}")
        return self._definition.data(model), data_of(text)

    def _failed(self, held: Held, call: EntityCall, message_id: str, error: BaseException) -> Held:
        if call.caller is None:
            self._ctx.log.warning(
                "%s.%s failed, and nobody waits for it: %r", self._definition.name, call.operation, error
            )
            return held
        return replace(held, answer=Answer(id=message_id, caller=call.caller, error=failures.record(error)))

    def _unless_too_large(self, after: Held, before: Held, call: EntityCall, message_id: str = "") -> Held:
        """State, timers and answer are one record."""
        size = len(after.to_text().encode())
        if size <= PAYLOAD_BYTES:
            return after
        what = f"what entity {self._definition.name} holds, with the answer"
        return self._failed(
            before, call, message_id, LimitExceeded(what, size, PAYLOAD_BYTES, instead="Keep less of it.")
        )


def _given(operation: EntityOperation, arguments: Any) -> tuple[list[Any], dict[str, Any]]:
    try:
        return operation.given(arguments)
    except (ValueError, TypeError, LookupError) as problem:
        reason = codec.reason_of(problem) if isinstance(problem, ValueError) else str(problem)
        raise InvalidInput(f"the arguments of {operation.title}", reason) from None
