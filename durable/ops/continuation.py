"""A continuation: the run ends here, and another one of its lineage goes on with a fresh history.

| state     | history | what happens                                                                      |
|-----------|---------|-----------------------------------------------------------------------------------|
| called    | nothing | the input is checked and encoded; nothing is stored                               |
| awaited   | nothing | the turn ends the run and creates its successor, both or neither                  |
| cancelled | nothing | the run is being cancelled: it does not continue, unless its code asks once more  |

It has no entry: until the successor exists the code comes here again on every replay, and then it is not run any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from durable.errors import UnansweredUpdate
from durable.journal import unawaited
from durable.ops.operation import Host, Operation

if TYPE_CHECKING:
    from durable.definitions import Workflow
    from durable.model.entry import Entry


class ContinuationOperation(Operation):
    """`await ctx.continue_as_new(workflow, input)`: nothing comes after it."""

    __slots__ = ("input", "lane", "workflow")
    kind = "continuation"

    def __init__(self, host: Host, workflow: Workflow[Any, Any], input: str | None, *, lane: str | None = None) -> None:
        super().__init__(host, None, "continue_as_new")
        self.workflow = workflow
        self.input = input
        """JSON text."""
        self.lane = lane
        """The lane that the successor needs a slot of."""

    def before_waiting(self) -> None:
        """Refuses to leave something behind that nobody would come back to."""
        journal = self.journal
        for taken in journal.loop.requests.values():
            if not taken.answered:
                journal.loop.fail(UnansweredUpdate(taken.name))
        if journal.root.unawaited:
            journal.loop.fail(unawaited(journal.root))

    def decode(self, entry: Entry) -> NoReturn:
        raise AssertionError(f'a continuation leaves no entry, and "{entry.key}" is one')
