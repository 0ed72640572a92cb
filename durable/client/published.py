"""What runs show of themselves: published values and streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from typing_extensions import TypeVar

from durable import codec
from durable.channels import StateKey
from durable.client import reading
from durable.client.part import ClientPart
from durable.errors import UndecodableHistory
from durable.model.chunk import before, chunk_from, counting
from durable.model.duration import Duration, optional_seconds
from durable.model.ids import check_name
from durable.model.review import STATE_PREFIX
from durable.options import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from durable.ports import Chunk

T = TypeVar("T")

OVERLAP = 2.0
"""Chunks of two threads may be stored in another order than their times say; a reader looks back so many seconds."""

PAGE = 500


@dataclass(frozen=True, slots=True)
class StreamChunk:
    """One chunk of a stream."""

    id: str
    value: Any
    source: str
    """The step that appended it; for workflow code its scope, empty for the outermost."""
    execution: str
    """Which execution of the step's body: a later one takes the place of those before it. Empty for workflow code."""
    number: int


class Published(ClientPart):
    """The part of the client that reads what runs show."""

    @overload
    def get_state(self, run_id: str, key: StateKey[T], /) -> T | None: ...
    @overload
    def get_state(self, run_id: str, key: str, /) -> Any: ...
    def get_state(self, run_id: str, key: Any, /) -> Any:
        """What the run has published under the key last, also after its end; None if it has published nothing there.

        Raises:
            RunNotFound: There is no such run.
            UndecodableHistory: The value does not fit the key's type.
        """
        name, type_ = (check_name("state key", key), codec.UNTYPED) if isinstance(key, str) else (key.name, key.type)
        text = self.ports.store.get_state(self.get(run_id).id, name)
        if text is None:
            return None
        try:
            return codec.decode(text, type_)
        except ValueError as problem:
            where = f'state "{name}" of run "{run_id}"'
            raise UndecodableHistory(where, codec.type_name(type_), codec.reason_of(problem)) from None

    def states(self, run_id: str, /) -> Mapping[str, Any]:
        """Everything that the run has published, as JSON data by key."""
        return {
            key: codec.decode(text, codec.UNTYPED)
            for key, text in self.ports.store.states(self.get(run_id).id).items()
            if not key.startswith(STATE_PREFIX)
        }

    def read_stream(self, run_id: str, name: str, /) -> list[Any]:
        """The values that the stream has so far; of a step whose body was executed again those of its last execution."""
        bodies = [chunk_from(chunk.text) for chunk in self._chunks(run_id, name)]
        return [codec.decode(body.text, codec.UNTYPED) for body in counting(bodies)]

    def stream_page(
        self, run_id: str, name: str, /, *, after: str | None = None, limit: int = 100
    ) -> Sequence[StreamChunk]:
        """Chunks as they were appended, behind the one with the id `after`; fewer than `limit` are all there are."""
        self.get(run_id)
        count("limit", limit, minimum=1)
        found = self.ports.store.read_stream(run_id, check_name("name of a stream", name), after=after, limit=limit)
        return [_seen(chunk) for chunk in found]

    def follow_stream(self, run_id: str, name: str, /, *, timeout: Duration | None = None) -> Iterator[StreamChunk]:
        """Gives chunks as they come, and ends when the run has ended.

        A chunk whose `execution` is not that of the chunk before it of the same `source` begins that step anew: forget
        what the source has sent. Raises TimeoutError when nothing comes for `timeout`.
        """
        allowed = optional_seconds(timeout, "follow_stream(timeout=...)")
        check_name("name of a stream", name)
        seen: set[tuple[str, str, int]] = set()
        last: str | None = None

        def look() -> list[StreamChunk] | None:
            ended = reading.the_run(
                self.ports, run_id
            ).ended  # asked first: what it appended before its end is there afterwards
            start = None if last is None else before(last, OVERLAP)
            chunks = [_seen(chunk) for chunk in self._chunks(run_id, name, start)]
            new = [chunk for chunk in chunks if (chunk.source, chunk.execution, chunk.number) not in seen]
            return new if new or ended else None

        while (new := self._until(run_id, look, allowed)) is not None:
            if not new:
                return
            for chunk in new:
                if (chunk.source, chunk.execution, chunk.number) not in seen:
                    seen.add((chunk.source, chunk.execution, chunk.number))
                    last = max(last or "", chunk.id)
                    yield chunk
        raise TimeoutError(f'stream "{name}" of run "{run_id}" has had nothing new for {allowed:g} s')

    def _chunks(self, run_id: str, name: str, after: str | None = None) -> Iterator[Chunk]:
        while True:
            page = self.ports.store.read_stream(run_id, name, after=after, limit=PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id


def _seen(chunk: Chunk) -> StreamChunk:
    body = chunk_from(chunk.text)
    return StreamChunk(chunk.id, codec.decode(body.text, codec.UNTYPED), body.source, body.execution, body.number)
