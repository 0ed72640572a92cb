"""Events: who waits is listed; whoever matches is told; workflows are started; what nobody waits for may be kept.

| a crash ...                                       | and then                                                           |
|---------------------------------------------------|--------------------------------------------------------------------|
| before everybody is told                          | the queue delivers the event again: the same messages, the same ids |
| between listing a run and looking for kept events | a take-over does both again                                        |
| between a result and taking the run off the list  | a take-over takes it off                                           |

An event is kept before the list is read, and a run is listed before it looks for kept events: so an event and a wait that
come at the same moment find each other, perhaps twice, under one message id.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable import codec
from durable.engine.triggers import start
from durable.errors import InvalidInput, LimitExceeded, NotStorable
from durable.model.envelope import Deliver
from durable.model.message import StoredMessage
from durable.model.subscription import (
    TAKEN_SECONDS,
    BufferedEvent,
    Subscription,
    awaited_from,
    event_message_id,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.app import App
    from durable.model.entry import Entry
    from durable.model.envelope import Publish
    from durable.model.run import Run
    from durable.ports import Ports

log = logging.getLogger("durable")

PAGE: Final = 100
"""Waiting runs that are looked at together."""

PAGES: Final = 5
"""After so many pages the next invocation goes on: one event must not hold up its batch for long."""

TOGETHER: Final = 1.0
"""Operations of a run that began to wait within this time did so in one turn, in seconds."""

RESERVE: Final = 5.0
"""Or when less than this is left, in seconds."""


# What a run does that waits


def subscribe(ports: Ports, run: Run, entry: Entry) -> StoredMessage | None:
    """Lists the run among those who wait; gives the earliest kept event that it waits for, if it has not had it."""
    awaited = awaited_from(entry.value)
    ports.store.put_subscription(Subscription(awaited=awaited, run_id=run.id, location=entry.location, since=entry.at))
    now = ports.clock.now()
    for kept in ports.store.buffered(awaited.event, now=now):
        if not awaited.fits(codec.decode(kept.body, codec.UNTYPED)):
            continue
        taken = ports.store.take_event(
            kept.event, kept.id, run.id, entry.location, at=kept.at, expires_at=kept.until + TAKEN_SECONDS
        )
        if taken.location == entry.location:
            message_id = event_message_id(kept.id, entry.location)
            return StoredMessage(id=message_id, name=entry.location, kind="event", body=kept.body, arrived_at=kept.at)
    return None


def unsubscribe(ports: Ports, run: Run, opened: Entry) -> None:
    """Takes the run off the list."""
    ports.store.delete_subscription(awaited_from(opened.value).event, run.id, opened.location)


# What becomes of an event


def publish(app: App, ports: Ports, event: Publish, *, accepted_at: float, ends: float) -> None:
    """Tells a part of those who wait, and sends itself on for the others; the first part starts workflows.

    Args:
        app: Whose workflows it may start.
        ports: Where runs wait.
        event: The event.
        accepted_at: When the queue accepted it: the publisher's clock may be ahead.
        ends: When the invocation does, by the monotonic clock.
    """
    if event.cursor is None:
        event = replace(event, at=min(event.at, accepted_at))
        for trigger in app.triggers(event.event):
            try:
                start(ports, trigger, event)
            except (InvalidInput, NotStorable, LimitExceeded) as refusal:
                log.warning('event "%s" (%s) starts no %s: %s', event.event, event.id, trigger.workflow.name, refusal)
        if event.buffer > 0:
            ports.store.put_buffered(_kept(event))
    payload = codec.decode(event.body, codec.UNTYPED)
    cursor = event.cursor
    told: dict[str, float] = {}
    for _ in range(PAGES):
        page = ports.store.subscriptions(event.event, cursor=cursor, limit=PAGE)
        for subscription in page.subscriptions:
            if subscription.awaited.fits(payload) and _tell(ports, event, subscription, told):
                told.setdefault(subscription.run_id, subscription.since)
        cursor = page.cursor
        if cursor is None or ends - ports.clock.monotonic() < RESERVE:
            break
    matched = event.matched or bool(told)
    if cursor is not None:
        ports.timers.send(replace(event, cursor=cursor, matched=matched))
    elif matched and event.buffer > 0:
        ports.store.close_buffered(_kept(event))


def _tell(ports: Ports, event: Publish, subscription: Subscription, told: Mapping[str, float]) -> bool:
    """Sends the event to a run, unless the run has ended or has had it before it began to wait here.

    Several operations of a run get it that waited before it was accepted, or that were listed together; of all others
    the first. To be on the list together is not enough: an invocation that had lost the run may have put on it what is
    long over. `told` is since when the run waits that was told just now.
    """
    run_id, location = subscription.run_id, subscription.location
    run = ports.store.get(run_id)
    if run is None or run.ended:  # an invocation that had lost the run has listed it
        ports.store.delete_subscription(event.event, run_id, location)
        return False
    now = ports.clock.now()
    expires_at = now + max(event.buffer, 0.0) + TAKEN_SECONDS
    taken = ports.store.take_event(event.event, event.id, run_id, location, at=event.at, expires_at=expires_at)
    together = abs(told.get(run_id, -math.inf) - subscription.since) < TOGETHER
    # What a run records of a message is never earlier than the message, however much its clock is behind.
    if taken.location != location and not together and subscription.since >= taken.at:
        return False
    message_id = event_message_id(event.id, location)
    ports.runs.send(
        Deliver(run_id=run_id, id=message_id, name=location, kind="event", body=event.body, arrived_at=event.at)
    )
    return True


def _kept(event: Publish) -> BufferedEvent:
    return BufferedEvent(event=event.event, id=event.id, body=event.body, at=event.at, until=event.at + event.buffer)
