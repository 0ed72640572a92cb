"""What a workflow calls: every operation of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.context.blocks import Blocks
from durable.context.branches import Branching
from durable.context.children import Children
from durable.context.entities import Entities
from durable.context.mailbox import Messages
from durable.context.moments import Moments
from durable.context.people import People
from durable.context.state import States
from durable.context.steps import StepCalls

if TYPE_CHECKING:
    from durable.execution import Execution


class Context(StepCalls, Blocks, Branching, Moments, Messages, Children, Entities, People, States):
    """The first argument of every workflow and of every block in it.

    What can wait or fail is awaited; nothing else is. An operation claims its place in the history when it is called
    and gives its result when it is awaited.
    """

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)

    def __repr__(self) -> str:
        return f'<context of run "{self._execution.run_id}">'
