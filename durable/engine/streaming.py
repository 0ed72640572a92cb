"""Appends to the streams of a run, from workflow code and from bodies of steps."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from durable.model.chunk import ChunkBody, chunk_id, execution_of

if TYPE_CHECKING:
    from durable.ports import Ports


class Streams:
    """What one turn appends; bodies of steps call it in their own threads."""

    def __init__(self, ports: Ports, run_id: str, epoch: int) -> None:
        self._ports = ports
        self._run_id = run_id
        self._epoch = epoch
        self._order = count(1)

    def append(self, stream: str, body: ChunkBody) -> None:
        """Stores a chunk behind those that are there."""
        identity = chunk_id(self._ports.clock.now(), self._epoch, next(self._order))
        self._ports.store.append_stream(self._run_id, stream, identity, body.to_text())

    def append_of_step(self, stream: str, number: int, text: str, *, source: str, attempt: int) -> None:
        """Stores a chunk of one attempt of a step."""
        execution = execution_of(self._epoch, attempt)
        self.append(stream, ChunkBody(text=text, source=source, execution=execution, number=number))
