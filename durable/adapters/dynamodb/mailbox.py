"""Mailboxes on DynamoDB: messages, the tombstones of consumed ones, and replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.adapters.dynamodb import conditions, items, keys
from durable.adapters.sizes import check_message, check_payload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.dynamodb.requests import Requests
    from durable.model.message import StoredMessage


class Mailbox:
    """Keeps messages until they are consumed, and what must be known of them afterwards."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def put(self, run_id: str, message: StoredMessage) -> bool:
        """One request."""
        check_message(message)
        absent = conditions.guarded(conditions.ABSENT)
        return self._requests.put(items.message_item(run_id, message), **absent) is None

    def delete(self, run_id: str, message_ids: Sequence[str]) -> None:
        """One request for each 25 messages."""
        self._requests.delete_all([items.key(run_id, keys.message_key(it)) for it in dict.fromkeys(message_ids)])

    def bury(self, run_id: str, message_ids: Sequence[str]) -> None:
        """One request for each 25 messages."""
        self._requests.put_all([items.tombstone_key(run_id, it) for it in dict.fromkeys(message_ids)])

    def buried(self, run_id: str, message_ids: Sequence[str]) -> set[str]:
        """One request for each 100 messages."""
        graves = [items.tombstone_key(run_id, it) for it in dict.fromkeys(message_ids)]
        return {item["sk"]["S"] for item in self._requests.get_all(graves, "sk")}

    def put_reply(self, run_id: str, message_id: str, reply: str, *, expires_at: float) -> None:
        """One request."""
        check_payload(f'the reply to message "{message_id}"', reply)
        self._requests.put(items.reply_item(run_id, message_id, reply, expires_at))

    def get_reply(self, run_id: str, message_id: str) -> str | None:
        """One request."""
        item = self._requests.get(items.reply_key(run_id, message_id))
        return None if item is None else items.read_payload(item)
