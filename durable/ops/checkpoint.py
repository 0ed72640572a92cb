"""A rollback checkpoint: what a run has done before this place is not undone any more.

| state    | history at the location | what happens                                                        |
|----------|-------------------------|---------------------------------------------------------------------|
| new      | nothing                 | the engine records it, then lets the code go on                     |
| recorded | an entry without value  | a rollback goes back to it and no further                           |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.ops.operation import Host, KnownOperation

if TYPE_CHECKING:
    from durable.model.entry import Entry


class CheckpointOperation(KnownOperation):
    """`await ctx.rollback_checkpoint("shipped")`."""

    __slots__ = ()
    kind = "checkpoint"

    def __init__(self, host: Host, name: str) -> None:
        self.text = None
        super().__init__(host, name, name)

    def decode(self, entry: Entry) -> None:
        pass
