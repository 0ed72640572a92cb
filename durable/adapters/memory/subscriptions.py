"""Who waits for which event, in memory, and the events that are kept for those who come late."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from durable.adapters.dynamodb import keys as layout
from durable.adapters.sizes import check_payload
from durable.model.subscription import SubscriptionPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.adapters.memory.partition import Table
    from durable.model.subscription import BufferedEvent, Subscription, Taken


class Subscriptions:
    """Lists by the event's name."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, subscription: Subscription) -> None:
        """Lists an operation."""
        sk = layout.subscriber_key(subscription.run_id, subscription.location)
        with self._table.lock:
            self._table.subscriptions.setdefault(subscription.event, {})[sk] = subscription

    def delete(self, event: str, run_id: str, location: str) -> None:
        """Takes it off the list."""
        with self._table.lock:
            self._table.subscriptions.get(event, {}).pop(layout.subscriber_key(run_id, location), None)

    def page(self, event: str, cursor: str | None, limit: int) -> SubscriptionPage:
        """Those behind the cursor, which is the key of the last one before."""
        with self._table.lock:
            listed = self._table.subscriptions.get(event, {})
            found = list(islice((sk for sk in sorted(listed) if cursor is None or sk > cursor), limit))
            return SubscriptionPage([listed[sk] for sk in found], found[-1] if len(found) == limit else None)

    def keep(self, event: BufferedEvent) -> None:
        """Keeps an event, once."""
        check_payload(f'event "{event.event}"', event.body)
        with self._table.lock:
            self._table.buffered.setdefault(event.event, {}).setdefault(event.id, event)

    def close(self, event: BufferedEvent) -> None:
        """Leaves a note in its place."""
        with self._table.lock:
            self._table.buffered.setdefault(event.event, {})[event.id] = None

    def kept(self, event: str, now: float) -> Sequence[BufferedEvent]:
        """Those whose time is not up."""
        with self._table.lock:
            found = [one for one in self._table.buffered.get(event, {}).values() if one is not None and one.until > now]
        return sorted(found, key=lambda one: (one.at, one.id))

    def take(self, event: str, event_id: str, run_id: str, taken: Taken, expires_at: float) -> Taken:  # noqa: ARG002 - memory forgets nothing
        """The first that was noted."""
        with self._table.lock:
            return self._table.taken.setdefault((event, event_id), {}).setdefault(run_id, taken)
