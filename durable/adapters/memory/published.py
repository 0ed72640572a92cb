"""What runs publish while they go on, in memory: values by key, and streams of chunks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from durable.adapters.dynamodb import keys as layout
from durable.adapters.memory.partition import Published
from durable.adapters.sizes import check_payload
from durable.errors import Fenced
from durable.ports import Chunk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.memory.partition import Table


class Publications:
    """Values and streams, which turns never load."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def put_state(self, run_id: str, key: str, text: str, *, epoch: int) -> None:
        """Publishes a value."""
        check_payload(f'the state "{key}"', text)
        sk = layout.state_key(key)
        with self._table.lock:
            partition = self._table.partition(run_id)
            old = partition.items.get(sk)
            if isinstance(old, Published) and old.epoch > epoch:
                raise Fenced(run_id, epoch)
            partition.put(sk, Published(text, epoch))

    def get_state(self, run_id: str, key: str) -> str | None:
        """A value."""
        with self._table.lock:
            item = self._table.partition(run_id).items.get(layout.state_key(key))
        return item.text if isinstance(item, Published) else None

    def states(self, run_id: str) -> Mapping[str, str]:
        """Every value."""
        with self._table.lock:
            found = self._table.partition(run_id).starting(layout.STATES)
            return {key: item.text for key, item in found if isinstance(item, Published)}

    def append_stream(self, run_id: str, key: str, chunk_id: str, text: str) -> None:
        """Adds a chunk, once."""
        check_payload(f'a chunk of the stream "{key}"', text)
        sk = layout.chunk_key(key, chunk_id)
        with self._table.lock:
            partition = self._table.partition(run_id)
            if sk not in partition.items:
                partition.put(sk, Chunk(chunk_id, text))

    def read_stream(self, run_id: str, key: str, after: str | None, limit: int) -> Sequence[Chunk]:
        """Chunks in order."""
        with self._table.lock:
            chunks = [item for _, item in self._table.partition(run_id).starting(layout.chunk_key(key, ""))]
        found = (chunk for chunk in chunks if isinstance(chunk, Chunk) and (after is None or chunk.id > after))
        return list(islice(found, limit))
