"""How an operation with iterations keeps its place: recorded progress, and ends for whatever an iteration has started."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from durable.journal import Journal, Scope, current_scope
from durable.ops.operation import KnownOperation

if TYPE_CHECKING:
    from durable.loop import WorkflowTask
    from durable.model.entry import Entry


class LoopRecord(KnownOperation):
    """The value of a loop (no mark), or its state before an iteration (`~20`)."""

    __slots__ = ("_type", "mark")
    kind = "loop"

    def __init__(
        self,
        journal: Journal,
        scope: Scope,
        location: str,
        mark: str,
        text: str | None,
        type_: Any,
        fn: str | None = None,
    ) -> None:
        self.journal = journal
        self.future = self.iterator = None
        self.fn = fn
        self.scope = scope
        self.location = location
        self.mark = mark
        self.text = text
        self._type = type_
        journal.enter("loop", location)
        self._register(journal, scope, location + mark)

    def decode(self, entry: Entry) -> Any:
        return self.read(entry.value, self._type)


async def outliving(record: LoopRecord) -> Any:
    """Waits for a record that replaces executed code, and holds back cancellations until it is there."""
    task = asyncio.ensure_future(record)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


async def end_tasks(journal: Journal, scope: Scope, created: int) -> None:
    """Ends what an iteration has started: it may be skipped later, so nothing of it may live on.

    `created` is how many tasks and futures there had been when it began.
    """
    tasks = journal.loop.tasks_since(created)
    left = [task for task in tasks if not task.done() and _started_in(task, scope)]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)


def _started_in(task: WorkflowTask, scope: Scope) -> bool:
    started_in = task.context.get(current_scope)
    return started_in is not None and started_in.prefix.startswith(scope.prefix)
