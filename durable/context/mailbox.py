"""Messages: the run's mailbox, signals, updates and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast, overload

from typing_extensions import TypeForm, TypeVar

from durable import codec
from durable.channels import Event, Message, Signal, Update
from durable.context.matching import match_keys
from durable.context.part import Op, Part
from durable.model.duration import Duration, optional_seconds, seconds
from durable.model.ids import check_name, check_run_id
from durable.model.limits import SQS_DELAY_SECONDS
from durable.ops.event import EventOperation
from durable.ops.receive import ReceiveOperation
from durable.ops.send import SendOperation
from durable.ops.update import UpdateOperation, UpdateRequest
from durable.options import MISSING, count

if TYPE_CHECKING:
    from durable.execution import Execution

T = TypeVar("T")
D = TypeVar("D")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
F = TypeVar("F")
R = TypeVar("R")


class Mailbox(Part):
    """The messages of the run: each is consumed once, in the order of arrival."""

    @overload
    def next(self, signal: Signal[T], /, *, timeout: Duration | None = None) -> Op[Message[T]]: ...
    @overload
    def next(self, signal: Signal[T], /, *, timeout: Duration, default: D) -> Op[Message[T] | D]: ...
    @overload
    def next(self, name: str, type: TypeForm[T], /, *, timeout: Duration | None = None) -> Op[Message[T]]: ...
    @overload
    def next(self, name: str, type: TypeForm[T], /, *, timeout: Duration, default: D) -> Op[Message[T] | D]: ...
    def next(
        self, signal: Any, type: Any = MISSING, /, *, timeout: Duration | None = None, default: Any = MISSING
    ) -> Any:
        """The next message of a signal, as soon as it is there. A timeout of 0 takes one that is there already.

        Raises:
            WaitTimeout: There was none in time, and no `default` was given.
        """
        return ReceiveOperation(
            self._execution,
            None,
            _types("ctx.mailbox.next", signal, type),
            timeout=_timeout("ctx.mailbox.next", timeout, default),
            default=default,
            shape="message",
        )

    @overload
    def next_any(
        self, a: Signal[A], b: Signal[B], /, *, timeout: Duration | None = None
    ) -> Op[Message[A] | Message[B]]: ...
    @overload
    def next_any(
        self, a: Signal[A], b: Signal[B], c: Signal[C], /, *, timeout: Duration | None = None
    ) -> Op[Message[A] | Message[B] | Message[C]]: ...
    @overload
    def next_any(
        self, a: Signal[A], b: Signal[B], c: Signal[C], d: Signal[F], /, *, timeout: Duration | None = None
    ) -> Op[Message[A] | Message[B] | Message[C] | Message[F]]: ...
    @overload
    def next_any(self, /, *, timeout: Duration | None = None) -> Op[Message[Any]]: ...
    @overload
    def next_any(self, /, *signals: Signal[T], timeout: Duration | None = None) -> Op[Message[T]]: ...
    def next_any(self, /, *signals: Signal[Any], timeout: Duration | None = None) -> Any:
        """The next message of any of these signals; without arguments, of any signal at all."""
        types: dict[str, Any] = {}
        for signal in signals:
            types.update(_types("ctx.mailbox.next_any", signal, MISSING))
        return ReceiveOperation(
            self._execution, None, types, timeout=_timeout("ctx.mailbox.next_any", timeout), shape="message"
        )

    def next_batch(self, signal: Signal[T], /, *, count: int, timeout: Duration = 0) -> Op[list[Message[T]]]:
        """Up to `count` messages, as soon as there is one; `[]` when the time is up, at once with a timeout of 0."""
        return ReceiveOperation(
            self._execution,
            None,
            _types("ctx.mailbox.next_batch", signal, MISSING),
            count=_batch_size(count),
            timeout=_timeout("ctx.mailbox.next_batch", timeout),
            shape="batch",
        )

    @overload
    def send(self, run_id: str, signal: Signal[T], body: T, /, *, delay: Duration = 0) -> Op[None]: ...
    @overload
    def send(self, run_id: str, signal: str, body: object, /, *, delay: Duration = 0) -> Op[None]: ...
    def send(self, run_id: str, signal: Any, body: Any, /, *, delay: Duration = 0) -> Any:
        """Sends a message to a run, once whatever the replays; `delay` is at most 15 minutes."""
        text = encoded_body(signal, body)
        wait = seconds(delay, "ctx.mailbox.send(delay=...)", minimum=0.0)
        if wait > SQS_DELAY_SECONDS:
            raise ValueError(
                f"ctx.mailbox.send(delay=...) is at most 15 minutes, not {wait:g} s: sleep before you send"
            )
        return SendOperation(self._execution, check_run_id(run_id), signal_name(signal), text, wait)


class Updates(Part):
    """The updates that callers have sent and that wait for an answer."""

    @overload
    def next(self, update: Update[A, R], /, *, timeout: Duration | None = None) -> Op[UpdateRequest[A, R]]: ...
    @overload
    def next(
        self, name: str, type: TypeForm[A], /, *, timeout: Duration | None = None
    ) -> Op[UpdateRequest[A, Any]]: ...
    def next(self, update: Any, type: Any = MISSING, /, *, timeout: Duration | None = None) -> Any:
        """The next update of this name, as soon as it is there: answer it by `respond` or `reject`.

        One that is not answered yet is handed out on every replay again; taking another of its name meanwhile is refused.

        Raises:
            WaitTimeout: There was none in time.
        """
        if isinstance(update, str):
            if type is MISSING:
                raise TypeError(
                    f'ctx.updates.next("{update}") lacks the type of the argument: write for example '
                    f'ctx.updates.next("{update}", str)'
                )
            update = Update[Any, Any](update, type, Any)
        known: Update[Any, Any] = update
        wait = optional_seconds(timeout, "ctx.updates.next(timeout=...)")
        response = codec.UNTYPED if known.response is Any else known.response
        return UpdateOperation(self._execution, known.name, known.type, response, timeout=wait)


class Messages(Part):
    """The part of the context that waits for what others send."""

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._mailbox: Mailbox | None = None

    @property
    def mailbox(self) -> Mailbox:
        """The messages of the run."""
        if self._mailbox is None:
            self._mailbox = Mailbox(self._execution)
        return self._mailbox

    @property
    def updates(self) -> Updates:
        """The updates of the run."""
        return Updates(self._execution)

    @overload
    def wait_for_signal(self, signal: Signal[T], /, *, timeout: Duration | None = None) -> Op[T]: ...
    @overload
    def wait_for_signal(self, signal: Signal[T], /, *, timeout: Duration, default: D) -> Op[T | D]: ...
    @overload
    def wait_for_signal(self, name: str, type: TypeForm[T], /, *, timeout: Duration | None = None) -> Op[T]: ...
    @overload
    def wait_for_signal(self, name: str, type: TypeForm[T], /, *, timeout: Duration, default: D) -> Op[T | D]: ...
    def wait_for_signal(
        self, signal: Any, type: Any = MISSING, /, *, timeout: Duration | None = None, default: Any = MISSING
    ) -> Any:
        """As `ctx.mailbox.next`, and gives the body alone."""
        return ReceiveOperation(
            self._execution,
            None,
            _types("ctx.wait_for_signal", signal, type),
            timeout=_timeout("ctx.wait_for_signal", timeout, default),
            default=default,
            shape="body",
        )

    @overload
    def wait_for_event(
        self, event: Event[T], /, *, match: Mapping[str, object] | None = None, timeout: Duration | None = None
    ) -> Op[T]: ...
    @overload
    def wait_for_event(
        self, event: Event[T], /, *, match: Mapping[str, object] | None = None, timeout: Duration, default: D
    ) -> Op[T | D]: ...
    @overload
    def wait_for_event(
        self,
        name: str,
        type: TypeForm[T],
        /,
        *,
        match: Mapping[str, object] | None = None,
        timeout: Duration | None = None,
    ) -> Op[T]: ...
    @overload
    def wait_for_event(
        self,
        name: str,
        type: TypeForm[T],
        /,
        *,
        match: Mapping[str, object] | None = None,
        timeout: Duration,
        default: D,
    ) -> Op[T | D]: ...
    def wait_for_event(
        self,
        event: Any,
        type: Any = MISSING,
        /,
        *,
        match: Mapping[str, object] | None = None,
        timeout: Duration | None = None,
        default: Any = MISSING,
    ) -> Any:
        """The payload of the next event of this name that has what `match` asks for.

        Events that were published before do not count, unless they are kept (`buffer=`) and nobody has waited for them.

        Args:
            event: The event, or its name and the type of its payload.
            type: Of the payload, with a name.
            match: Fields of the payload ("customer.id") and the values that they must have.
            timeout: How long to wait; 0 takes a kept event or none.
            default: What a timeout gives.

        Raises:
            WaitTimeout: There was none in time, and no `default` was given.
            ValueError: The payload's type has no such field, or the field no such value.
        """
        known = _event(event, type)
        return EventOperation(
            self._execution,
            known,
            match_keys(known, match),
            timeout=_timeout("ctx.wait_for_event", timeout, default),
            default=default,
        )


def encoded_body(signal: Signal[Any] | str, body: object) -> str:
    """The body of a message as JSON text; raises InvalidInput where it does not fit the signal's type."""
    what = f'the body of message "{signal_name(signal)}"'
    if isinstance(signal, str):
        return codec.encode(body, codec.UNTYPED, what=what)
    return codec.encode(codec.validated(body, signal.type, what=what), signal.type, what=what)


def signal_name(signal: Signal[Any] | str) -> str:
    """The name under which messages of this signal are sent."""
    return check_name("signal name", signal) if isinstance(signal, str) else signal.name


def _event(event: object, type_: Any) -> Event[Any]:
    if isinstance(event, Event):
        return cast("Event[Any]", event)
    if not isinstance(event, str):
        raise TypeError(f"ctx.wait_for_event() takes an Event, or a name and a type, not {event!r}")
    if type_ is MISSING:
        raise TypeError(
            f'ctx.wait_for_event("{event}") lacks the type of the payload: ctx.wait_for_event("{event}", Order)'
        )
    return Event[Any](event, type_)


def _types(operation: str, signal: object, type_: Any) -> dict[str, Any]:
    if isinstance(signal, Signal):
        return {signal.name: signal.type}
    if not isinstance(signal, str):
        raise TypeError(f"{operation}() takes a Signal, or a name and a type, not {signal!r}")
    if type_ is MISSING:
        raise TypeError(f'{operation}("{signal}") lacks the type of the message: {operation}("{signal}", Approve)')
    return {Signal[Any](signal, type_).name: type_}


def _timeout(operation: str, timeout: Duration | None, default: object = MISSING) -> float | None:
    if timeout is None and default is not MISSING:
        raise ValueError(f"{operation}(default=...) is what a timeout gives: add timeout=...")
    return optional_seconds(timeout, f"{operation}(timeout=...)")


def _batch_size(size: int) -> int:
    if count("ctx.mailbox.next_batch(count=...)", size, minimum=1) > 1000:
        raise ValueError(f"ctx.mailbox.next_batch(count=...) is at most 1000, not {size}")
    return size
