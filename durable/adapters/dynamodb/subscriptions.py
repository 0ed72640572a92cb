"""Who waits for which event, on DynamoDB, and the events that are kept for those who come late."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, keys
from durable.adapters.sizes import check_payload
from durable.errors import StoreUnavailable
from durable.model.subscription import BufferedEvent, Subscription, SubscriptionPage, Taken, awaited_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.dynamodb.attributes import Item
    from durable.adapters.dynamodb.requests import Requests


class Subscriptions:
    """Lists by the event's name; each method is one request, `kept` one a page of 1 MB."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def put(self, subscription: Subscription) -> None:
        """Lists an operation."""
        where = _key(
            keys.subscribers(subscription.event), keys.subscriber_key(subscription.run_id, subscription.location)
        )
        told = {"awaited": a.text(subscription.awaited.to_text()), "since": a.number(subscription.since)}
        self._requests.put(where | told)

    def delete(self, event: str, run_id: str, location: str) -> None:
        """Takes it off the list."""
        self._requests.delete(_key(keys.subscribers(event), keys.subscriber_key(run_id, location)))

    def page(self, event: str, cursor: str | None, limit: int) -> SubscriptionPage:
        """Those behind the cursor, which is the sort key of the last one before."""
        partition = keys.subscribers(event)
        start = {} if cursor is None else {"ExclusiveStartKey": _key(partition, cursor)}
        page = self._requests.query(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": a.text(partition)},
            ConsistentRead=True,
            Limit=limit,
            **start,
        )
        last = page.get("LastEvaluatedKey")
        return SubscriptionPage([_subscription(item) for item in page["Items"]], last["sk"]["S"] if last else None)

    def keep(self, event: BufferedEvent) -> None:
        """Keeps an event, once."""
        check_payload(f'event "{event.event}"', event.body)
        told = {"body": a.packed(event.body), "at": a.number(event.at)}
        self._requests.put(_event_key(event) | told | _until(event), **conditions.guarded(conditions.ABSENT))

    def close(self, event: BufferedEvent) -> None:
        """Leaves a note in its place, without the payload."""
        self._requests.put(_event_key(event) | _until(event))

    def kept(self, event: str, now: float) -> Sequence[BufferedEvent]:
        """Those whose time is not up; DynamoDB deletes what has expired some time later."""
        rows = self._requests.pages(
            KeyConditionExpression="pk = :pk",
            FilterExpression="attribute_exists(body)",
            ExpressionAttributeValues={":pk": a.text(keys.kept_events(event))},
            ConsistentRead=True,
        )
        found = [_buffered(event, item) for item in rows]
        return sorted((one for one in found if one.until > now), key=lambda one: (one.at, one.id))

    def take(self, event: str, event_id: str, run_id: str, taken: Taken, expires_at: float) -> Taken:
        """The first that was noted."""
        note = _key(keys.takers(event, event_id), run_id) | {
            "location": a.text(taken.location),
            "at": a.number(taken.at),
            "expires_at": a.number(ceil(expires_at)),
        }
        failed = self._requests.put(note, **conditions.guarded(conditions.ABSENT))
        if failed is None:
            return taken
        if failed.old is None:
            raise StoreUnavailable(f'event "{event}": what says that run "{run_id}" has had it is gone')
        return Taken(a.read_text(failed.old["location"]), a.read_float(failed.old["at"]))


def _key(pk: str, sk: str) -> Item:
    return {"pk": a.text(pk), "sk": a.text(sk)}


def _event_key(event: BufferedEvent) -> Item:
    return _key(keys.kept_events(event.event), event.id)


def _until(event: BufferedEvent) -> Item:
    return {"until": a.number(event.until), "expires_at": a.number(ceil(event.until))}


def _subscription(item: Mapping[str, Any]) -> Subscription:
    run_id, _, location = item["sk"]["S"].partition("#")
    return Subscription(
        awaited=awaited_from(a.read_text(item["awaited"])),
        run_id=run_id,
        location=location,
        since=a.read_float(item["since"]),
    )


def _buffered(event: str, item: Mapping[str, Any]) -> BufferedEvent:
    return BufferedEvent(
        event=event,
        id=item["sk"]["S"],
        body=a.read_packed(item["body"]),
        at=a.read_float(item["at"]),
        until=a.read_float(item["until"]),
    )
