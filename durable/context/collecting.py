"""What an app does with an event: start a workflow for each, or collect some and start one for all of them.

A collector is a run of its own, one for each key, that begins with the first event and then never ends. It waits for nothing
but events, so between two batches it costs nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from durable.channels import Signal
from durable.definitions import Workflow
from durable.model.ids import derived_id
from durable.model.limits import PAYLOAD_BYTES
from durable.model.subscription import NOTHING, at_path, event_run_id
from durable.ops.child import ChildOrder, StartDetachedOperation
from durable.values import Continue

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from durable.context.context import Context

MOST: Final = 1000
"""Events of one run, where no batch says a size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A workflow that an event starts."""

    event: str
    workflow: Workflow[Any, Any]
    item_type: Any
    """What the workflow takes of one event."""
    size: int = 1
    window: float | None = None
    """Seconds from the first event of a batch on."""
    debounce: float | None = None
    """Seconds without an event that end a batch."""
    key: tuple[tuple[str, ...], ...] | None = None
    """The way to the part of the payload by which events are told apart."""
    collector: Workflow[Any, Any] | None = None
    """What collects them; None where each starts a run."""


@dataclass(frozen=True, slots=True)
class CollectedEvent:
    """An event on its way through a collector."""

    id: str
    body: str
    """The payload's JSON text."""


COLLECTED: Final = Signal("event", CollectedEvent)


def collector_id(trigger: Trigger, payload: object) -> str:
    """The id of the run that collects such events."""
    parts = (trigger.event, trigger.workflow.name)
    if trigger.key is None:
        return derived_id("on", *parts)
    found = at_path(payload, trigger.key)
    found = None if found is NOTHING else found
    return derived_id("on", *parts, found if isinstance(found, str) else json.dumps(found, sort_keys=True))


def collecting(trigger: Trigger) -> Callable[[Context], Coroutine[Any, Any, None]]:
    """The code of a collector: batch after batch."""

    async def collect(ctx: Context) -> None:
        await ctx.loop("batch", one_batch, state=[])

    async def one_batch(ctx: Context, held: list[CollectedEvent]) -> Continue[list[CollectedEvent]]:
        events = list(held)
        newest = opened = ctx.now()
        if not events:
            first = await ctx.mailbox.next(COLLECTED)
            events.append(first.body)
            newest = opened = first.sent_at
        while len(events) < trigger.size and _size(events) < PAYLOAD_BYTES:
            left = max(0.0, (_closing(trigger, opened, newest) - ctx.now()).total_seconds())
            more = await ctx.mailbox.next_batch(COLLECTED, count=min(MOST, trigger.size - len(events)), timeout=left)
            if not more:
                break
            events += [message.body for message in more]
            newest = more[-1].sent_at
        taken = _that_fit(events)
        await StartDetachedOperation(ctx._execution, _order(trigger.workflow, events[:taken]))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - authors have no such operation
        return Continue(events[taken:])

    return collect


def _closing(trigger: Trigger, opened: datetime, newest: datetime) -> datetime:
    """When the batch closes, if nothing else comes."""
    ends: list[datetime] = []
    if trigger.window is not None:
        ends.append(opened + timedelta(seconds=trigger.window))
    if trigger.debounce is not None:
        ends.append(newest + timedelta(seconds=trigger.debounce))
    return min(ends)


def _size(events: Sequence[CollectedEvent]) -> int:
    """Bytes of the input that they make together."""
    return 1 + sum(len(event.body.encode()) + 1 for event in events)


def _that_fit(events: Sequence[CollectedEvent]) -> int:
    """How many of them, from the first on, one input can hold; the others open the next batch."""
    room = PAYLOAD_BYTES - 1
    for number, event in enumerate(events):
        room -= len(event.body.encode()) + 1
        if room < 0:
            return max(1, number)
    return len(events)


def _order(workflow: Workflow[Any, Any], events: Sequence[CollectedEvent]) -> ChildOrder:
    return ChildOrder(
        workflow=workflow,
        input=f"[{','.join(event.body for event in events)}]",
        id=event_run_id(events[0].id, workflow.name),
        tags=workflow.tags,
        close="abandon",
    )
