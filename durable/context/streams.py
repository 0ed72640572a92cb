"""Streams: chunks that a run hands out while it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from durable import codec
from durable.journal import current_scope
from durable.model.chunk import ChunkBody
from durable.ops.state import Chunk, announce

if TYPE_CHECKING:
    from durable.execution import Execution


class Stream:
    """A stream as workflow code appends to it."""

    __slots__ = ("_execution", "_name")

    def __init__(self, execution: Execution, name: str) -> None:
        self._execution = execution
        self._name = name

    def append(self, value: object, /) -> None:
        """Appends a plain JSON value: stored before the next step begins, once whatever the replays."""
        execution = self._execution
        execution.journal.enter("stream", self._name)
        scope = current_scope.get()
        counter = _COUNTER + self._name
        number = scope.used[counter] = scope.used.get(counter, 0) + 1
        text = codec.encode(value, codec.UNTYPED, what=f'a chunk of stream "{self._name}"')
        announce(execution, execution.live, Chunk(self._name, ChunkBody(text=text, source=scope.prefix, number=number)))


_COUNTER: Final = "\0stream:"
"""No name of an operation begins like this, so the count can be kept with those of the scope."""
