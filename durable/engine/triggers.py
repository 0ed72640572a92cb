"""Workflows that an event starts: one run for each event, or one for what a collector has gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from durable import codec
from durable.context.collecting import CollectedEvent, collector_id
from durable.definitions import input_text
from durable.flow import lane_name_of_run
from durable.model.envelope import Deliver, Start, StartSpec
from durable.model.run import pending_run
from durable.model.subscription import event_run_id
from durable.ports import Created, Exists, KeyTaken

if TYPE_CHECKING:
    from durable.context.collecting import Trigger
    from durable.model.envelope import Publish
    from durable.ports import Ports


def start(ports: Ports, trigger: Trigger, event: Publish) -> None:
    """Starts the run, or hands the event to the collector; twice is once.

    Raises:
        InvalidInput: The workflow does not take such a payload.
    """
    if trigger.collector is None:
        _start_run(ports, trigger, event)
    else:
        _hand_over(ports, trigger, event)


def _start_run(ports: Ports, trigger: Trigger, event: Publish) -> None:
    workflow = trigger.workflow
    text = input_text(workflow, codec.decode(event.body, codec.UNTYPED), from_json=True)
    run, stored_input = pending_run(
        id=event_run_id(event.id, workflow.name), workflow=workflow.name, version=workflow.version, input=text,
        input_digest=codec.digest(text), writer=ports.new_id(), now=ports.clock.now(), tags=workflow.tags,
        headers=event.headers, lane=lane_name_of_run(workflow, text),
    )  # fmt: skip
    answer = ports.store.create(run, input=stored_input)
    match answer:
        case Created(created) | Exists(created):
            if created.status == "pending" and created.started_at is None:  # else its envelope has arrived
                ports.runs.send(Start(run_id=created.id, id=ports.new_id()))
        case KeyTaken():
            raise AssertionError("what an event starts has no idempotency key")
        case _:
            assert_never(answer)


def _hand_over(ports: Ports, trigger: Trigger, event: Publish) -> None:
    collector = trigger.collector
    assert collector is not None
    what = f'event "{event.event}" for workflow "{trigger.workflow.name}"'
    item = codec.parsed(event.body, trigger.item_type, what=what)
    collected = CollectedEvent(id=event.id, body=codec.encode(item, trigger.item_type, what=what))
    ports.runs.send(
        Deliver(
            run_id=collector_id(trigger, codec.decode(event.body, codec.UNTYPED)),
            id=f"evt:{event.id}",
            name="event",
            body=codec.encode(collected, CollectedEvent),
            arrived_at=event.at,
            start=StartSpec(workflow=collector.name, version=collector.version, input=None, headers=event.headers),
        )
    )
