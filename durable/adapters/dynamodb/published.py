"""What runs publish while they go on, on DynamoDB: values by key, and streams of chunks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, items, keys
from durable.adapters.sizes import check_payload
from durable.errors import Fenced
from durable.ports import Chunk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.dynamodb.requests import Requests


class Publications:
    """Values and streams, which turns never load."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def put_state(self, run_id: str, key: str, text: str, *, epoch: int) -> None:
        """One request."""
        check_payload(f'the state "{key}"', text)
        item = items.payload_item(run_id, keys.state_key(key), text) | {"epoch": a.number(epoch)}
        guard = conditions.guarded(conditions.NOT_NEWER, {":epoch": a.number(epoch)})
        if self._requests.put(item, **guard) is not None:
            raise Fenced(run_id, epoch)

    def get_state(self, run_id: str, key: str) -> str | None:
        """One request."""
        item = self._requests.get(items.key(run_id, keys.state_key(key)))
        return None if item is None else items.read_payload(item)

    def states(self, run_id: str) -> Mapping[str, str]:
        """One request a page of 1 MB."""
        found = self._requests.pages(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": a.text(keys.partition(run_id)), ":prefix": a.text(keys.STATES)},
            ConsistentRead=True,
        )
        return {item["sk"]["S"].removeprefix(keys.STATES): items.read_payload(item) for item in found}

    def append_stream(self, run_id: str, key: str, chunk_id: str, text: str) -> None:
        """One request."""
        check_payload(f'a chunk of the stream "{key}"', text)
        chunk = items.payload_item(run_id, keys.chunk_key(key, chunk_id), text)
        self._requests.put(chunk, **conditions.guarded(conditions.ABSENT))

    def read_stream(self, run_id: str, key: str, after: str | None, limit: int) -> Sequence[Chunk]:
        """One request a page of 1 MB. The chunk `after` is read as well, because a range includes its ends."""
        low, high = keys.chunk_range(key, after or "")
        values = {":pk": a.text(keys.partition(run_id)), ":low": a.text(low), ":high": a.text(high)}
        found = self._requests.pages(
            KeyConditionExpression="pk = :pk AND sk BETWEEN :low AND :high",
            ExpressionAttributeValues=values,
            ConsistentRead=True,
            Limit=limit + 1,
        )
        chunks = (Chunk(keys.chunk_id_of(item["sk"]["S"]), items.read_payload(item)) for item in found)
        return list(islice((chunk for chunk in chunks if chunk.id != after), limit))
