"""Mailboxes in memory: messages, the tombstones of consumed ones, and replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.adapters.dynamodb import keys as layout
from durable.adapters.sizes import check_message, check_payload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.memory.partition import Table
    from durable.model.message import StoredMessage


class Mailbox:
    """Keeps messages until they are consumed, and what must be known of them afterwards."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, run_id: str, message: StoredMessage) -> bool:
        """Puts a message, once."""
        check_message(message)
        sk = layout.message_key(message.id)
        with self._table.lock:
            partition = self._table.partition(run_id)
            if sk in partition.items:
                return False
            partition.put(sk, message)
            return True

    def delete(self, run_id: str, message_ids: Sequence[str]) -> None:
        """Deletes messages."""
        with self._table.lock:
            partition = self._table.partition(run_id)
            for message_id in message_ids:
                partition.delete(layout.message_key(message_id))

    def bury(self, run_id: str, message_ids: Sequence[str]) -> None:
        """Notes that messages are consumed."""
        with self._table.lock:
            self._table.tombstones.setdefault(run_id, set()).update(message_ids)

    def buried(self, run_id: str, message_ids: Sequence[str]) -> set[str]:
        """Which messages are consumed and their entries gone."""
        with self._table.lock:
            return self._table.tombstones.get(run_id, set()) & set(message_ids)

    def put_reply(self, run_id: str, message_id: str, reply: str) -> None:
        """Stores a reply."""
        check_payload(f'the reply to message "{message_id}"', reply)
        with self._table.lock:
            self._table.replies.setdefault(run_id, {})[message_id] = reply

    def get_reply(self, run_id: str, message_id: str) -> str | None:
        """A reply."""
        with self._table.lock:
            return self._table.replies.get(run_id, {}).get(message_id)
