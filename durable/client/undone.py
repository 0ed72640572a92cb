"""What a client will be able to do: declared with its types, refused with NotAvailable."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, overload

from typing_extensions import TypeVar

from durable.channels import Event
from durable.pending import not_available

if TYPE_CHECKING:
    from durable.client.handle import RunHandle
    from durable.context import Context

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
E = TypeVar("E")


class ClientEntityRef(Generic[E]):
    """One entity, as callers see it."""

    __slots__ = ()

    @overload
    def call(
        self, op: Callable[Concatenate[E, Context, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call(self, op: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Has the operation performed and gives its result."""
        not_available("client.entity")

    @overload
    def signal(
        self, op: Callable[Concatenate[E, Context, P], object], /, *args: P.args, **kwargs: P.kwargs
    ) -> None: ...
    @overload
    def signal(self, op: Callable[Concatenate[E, P], object], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    def signal(self, op: Any, /, *args: Any, **kwargs: Any) -> None:
        """Has the operation performed and does not wait for it."""
        not_available("client.entity")

    def state(self) -> E:
        """The entity's state."""
        not_available("client.entity")


class Undone:
    """The part of the client whose machinery is not there yet."""

    __slots__ = ()

    def publish_event(self, event: Event[T], payload: T, /, *, id: str | None = None) -> None:
        """Tells an event to every run that waits for it and starts those that are registered for it."""
        not_available("client.publish_event")

    def entity(self, cls: type[E], key: str, /) -> ClientEntityRef[E]:
        """The entity of this class and key."""
        not_available("client.entity")

    def pause(self, run_id: str) -> None:
        """Starts no new work of the run; nothing is lost."""
        not_available("client.pause")

    def unpause(self, run_id: str) -> None:
        """Lets a paused run go on."""
        not_available("client.unpause")

    def rerun_from(self, run_id: str, location: str) -> None:
        """Forgets an operation and all recorded after it, and lets the run go on from there."""
        not_available("client.rerun_from")

    def fork(self, run_id: str, location: str) -> RunHandle[Any]:
        """Starts a run that shares the past up to an operation."""
        not_available("client.fork")

    def delete(self, run_id: str) -> None:
        """Forgets an ended run."""
        not_available("client.delete")
