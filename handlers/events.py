"""The events function: what comes through a rule of an EventBridge bus is published like any other event."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from durable import codec
from durable.errors import InvalidName
from durable.model.envelope import Publish
from durable.model.ids import check_message_id, check_name
from durable.model.limits import PAYLOAD_BYTES
from handlers import bootstrap

if TYPE_CHECKING:
    from durable.ports import Ports

log = logging.getLogger("durable")


def handler(event: Mapping[str, Any], context: Any) -> None:  # noqa: ARG001 - Lambda's signature
    """Publishes the event under the name in its detail-type; what raises is tried again, then a dead letter."""
    publish(event, bootstrap.container().ports)


def publish(event: Mapping[str, Any], ports: Ports) -> None:
    """Accepts the event for whoever waits for it, known to the app or not: a run may wait for any name.

    One whose name or id could be no event's is nobody's: it is logged and dropped.

    Raises:
        LimitExceeded: The detail is too large.
        StoreUnavailable: The queue did not take it.
    """
    try:
        name, event_id = check_name("event name", event["detail-type"]), check_message_id(event["id"])
    except InvalidName as refusal:
        log.warning("an event of %s is dropped: %s", event.get("source"), refusal)
        return
    now = ports.clock.now()
    text = codec.encode(event["detail"], codec.UNTYPED, what=f'the detail of event "{name}"', limit=PAYLOAD_BYTES)
    ports.timers.send(Publish(event=name, id=event_id, body=text, at=_moment(event.get("time"), now)))


def _moment(text: str | None, now: float) -> float:
    """When it happened, by whoever told it; not later than now."""
    try:
        return min(now, datetime.fromisoformat(text or "").timestamp())
    except ValueError:
        return now


bootstrap.prepare(lambda container: container.ports)
