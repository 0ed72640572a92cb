"""Runs of their own: children, successors and entities."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, NoReturn, ParamSpec, cast, overload

from typing_extensions import TypeVar

from durable.context.part import Op, Part
from durable.definitions import Workflow, input_text
from durable.model.duration import Duration
from durable.ops.continuation import ContinuationOperation
from durable.options import MISSING
from durable.pending import not_available

if TYPE_CHECKING:
    from durable.context.context import Context

P = ParamSpec("P")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")
E = TypeVar("E")
R_co = TypeVar("R_co", covariant=True)

ParentClose = Literal["cancel", "abandon"]


class ChildHandle(Generic[R_co]):
    """A child that has been started."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id

    def result(self) -> Op[R_co]:
        """The child's output, when it has completed."""
        not_available("ctx.start_child")

    def cancel(self) -> Op[None]:
        """Asks the child to end."""
        not_available("ctx.start_child")


class EntityRef(Generic[E]):
    """One entity. Its operations are the class's methods (`Cart.add`); a context parameter comes right after self."""

    __slots__ = ()

    @overload
    def call(
        self, op: Callable[Concatenate[E, Context, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[T]: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    @overload
    def call(self, op: Callable[Concatenate[E, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Op[T]: ...
    def call(self, op: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Has the operation performed, in order with all others of the key, and gives its result."""
        not_available("ctx.entity")

    @overload
    def signal(
        self, op: Callable[Concatenate[E, Context, P], object], /, *args: P.args, **kwargs: P.kwargs
    ) -> Op[None]: ...
    @overload
    def signal(self, op: Callable[Concatenate[E, P], object], /, *args: P.args, **kwargs: P.kwargs) -> Op[None]: ...
    def signal(self, op: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Has the operation performed and does not wait for it."""
        not_available("ctx.entity")

    def delayed(self, delay: Duration, /, *, id: str | None = None) -> EntityRef[E]:
        """The same entity, whose signals arrive after the delay; one of the same id replaces one that waits."""
        not_available("ctx.entity")

    def state(self) -> Op[E]:
        """The entity's state."""
        not_available("ctx.entity")


class Children(Part):
    """The part of the context that starts other runs."""

    @overload
    def child(
        self,
        workflow: Workflow[None, R],
        /,
        *,
        id: str | None = None,
        tags: Sequence[str] = (),
        parent_close: ParentClose = "cancel",
    ) -> Op[R]: ...
    @overload
    def child(
        self,
        workflow: Workflow[I, R],
        input: I,
        /,
        *,
        id: str | None = None,
        tags: Sequence[str] = (),
        parent_close: ParentClose = "cancel",
    ) -> Op[R]: ...
    def child(self, workflow: Any, /, *input: Any, **_options: Any) -> Any:
        """Starts a run of the workflow and gives its output.

        Raises:
            ChildFailed: It ended otherwise.
        """
        self._missing("ctx.child")

    @overload
    def start_child(
        self,
        workflow: Workflow[None, R],
        /,
        *,
        id: str | None = None,
        tags: Sequence[str] = (),
        parent_close: ParentClose = "cancel",
    ) -> Op[ChildHandle[R]]: ...
    @overload
    def start_child(
        self,
        workflow: Workflow[I, R],
        input: I,
        /,
        *,
        id: str | None = None,
        tags: Sequence[str] = (),
        parent_close: ParentClose = "cancel",
    ) -> Op[ChildHandle[R]]: ...
    def start_child(self, workflow: Any, /, *input: Any, **_options: Any) -> Any:
        """Starts a run of the workflow and gives a handle to it."""
        self._missing("ctx.start_child")

    @overload
    def continue_as_new(self, workflow: Workflow[None, Any], /) -> Op[NoReturn]: ...
    @overload
    def continue_as_new(self, workflow: Workflow[I, Any], input: I, /) -> Op[NoReturn]: ...
    def continue_as_new(self, workflow: Any, input: Any = MISSING, /) -> Any:
        """Ends this run and goes on in a fresh one of the same lineage: never returns.

        Unread messages, tags, attributes, the parent and the deadline go over; who waits for this run waits for that one.
        What other tasks of this run are doing is given up, as at the end of any workflow.

        Raises:
            InvalidInput: The input does not fit the workflow; the run goes on.
        """
        if not isinstance(workflow, Workflow):
            raise TypeError(
                f"ctx.continue_as_new() takes a registered workflow and its input, not {type(workflow).__name__}: "
                "await ctx.continue_as_new(fulfil, order)"
            )
        known = cast("Workflow[Any, Any]", workflow)
        return ContinuationOperation(self._execution, known, input_text(known, input))

    def entity(self, cls: type[E], key: str, /) -> EntityRef[E]:
        """The entity of this class and key."""
        self._missing("ctx.entity")
