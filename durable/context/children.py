"""Runs of their own: children and successors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, cast, overload

from typing_extensions import TypeVar

from durable.context.part import Op, Part
from durable.definitions import Workflow, input_text
from durable.flow import lane_name_of_run
from durable.model.ids import PREFIX_OF_ENTITIES, check_new_run_id
from durable.model.tags import check_tags
from durable.ops.child import (
    ChildOperation,
    ChildOrder,
    ChildResultOperation,
    CloseChildOperation,
    ParentClose,
    StartChildOperation,
)
from durable.ops.continuation import ContinuationOperation
from durable.options import MISSING

if TYPE_CHECKING:
    from durable.execution import Execution

I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ChildHandle(Generic[R_co]):
    """A child that has been started. It may be passed on, also out of a branch."""

    __slots__ = ("_execution", "_result", "_started_at", "_workflow", "id")

    def __init__(self, execution: Execution, id: str, started_at: str, workflow: Workflow[Any, R_co]) -> None:
        self._execution = execution
        self.id = id
        """The run's id: for the client, for `ctx.mailbox.send`."""
        self._started_at = started_at
        self._workflow = workflow
        self._result: ChildResultOperation | None = None

    def result(self) -> Op[R_co]:
        """The child's output, when it has completed.

        Raises:
            ChildFailed: It ended otherwise.
        """
        if self._result is not None and not self._result.given_up:
            return self._result.again()
        self._result = ChildResultOperation(self._execution, self.id, self._started_at, self._workflow)
        return self._result

    def cancel(self) -> Op[None]:
        """Asks the child to end; returns once that is sure to reach it."""
        return CloseChildOperation(self._execution, self.id, self._started_at)


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
    def child(
        self,
        workflow: Any,
        input: Any = MISSING,
        /,
        *,
        id: str | None = None,
        tags: Sequence[str] = (),
        parent_close: ParentClose = "cancel",
    ) -> Any:
        """Starts a run of the workflow and gives its output. A run of this id that exists with the same input will do.

        Args:
            workflow: The workflow.
            input: What it takes.
            id: The child's id; one that is derived from this run and place if it is left out.
            tags: Those of the workflow are added.
            parent_close: What becomes of the child when this run ends, or stops waiting, before it.

        Raises:
            ChildFailed: It ended otherwise. Also an instance of the class of the error that ended it.
        """
        return ChildOperation(self._execution, _order("ctx.child", workflow, input, id, tags, parent_close))

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
    def start_child(
        self,
        workflow: Any,
        input: Any = MISSING,
        /,
        *,
        id: str | None = None,
        tags: Sequence[str] = (),
        parent_close: ParentClose = "cancel",
    ) -> Any:
        """Starts a run of the workflow and gives a handle to it; the arguments are those of `ctx.child`."""
        order = _order("ctx.start_child", workflow, input, id, tags, parent_close)
        return StartChildOperation(self._execution, order, partial(ChildHandle[Any], self._execution))

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
        if self._execution.info.workflow.startswith(PREFIX_OF_ENTITIES):
            raise RuntimeError("an operation of an entity cannot continue as a run: the entity would be gone")
        known = cast("Workflow[Any, Any]", workflow)
        text = input_text(known, input)
        return ContinuationOperation(self._execution, known, text, lane=lane_name_of_run(known, text))


def _order(
    call: str, workflow: Any, input: Any, id: str | None, tags: Sequence[str], parent_close: ParentClose
) -> ChildOrder:
    if not isinstance(workflow, Workflow):
        raise TypeError(
            f"{call}() takes a registered workflow and its input, not {type(workflow).__name__}: await {call}(fulfil, order)"
        )
    if parent_close not in {"cancel", "abandon"}:
        raise ValueError(f'{call}(parent_close=...) is "cancel" or "abandon", not {parent_close!r}')
    known = cast("Workflow[Any, Any]", workflow)
    text = input_text(known, input)
    return ChildOrder(
        workflow=known,
        input=text,
        id=None if id is None else check_new_run_id(id),
        tags=check_tags((*known.tags, *check_tags(tags))) if tags else known.tags,
        close=parent_close,
        lane=lane_name_of_run(known, text),
    )
