"""The part of the app that says what events start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args, get_origin, overload

from typing_extensions import TypeVar

from durable import codec
from durable.channels import Event
from durable.context.collecting import MOST, Trigger, collecting
from durable.context.matching import path_of
from durable.definitions import Workflow
from durable.model.duration import Duration, seconds
from durable.options import Batch

T = TypeVar("T")


class Triggers:
    """What events start."""

    def __init__(self) -> None:
        self._triggers: dict[str, list[Trigger]] = {}
        self.collectors: dict[str, Workflow[Any, Any]] = {}
        """Workflows of our own, by name: found by their runs, and listed nowhere."""

    @overload
    def on_event(self, event: Event[T], workflow: Workflow[T, Any], /) -> None: ...
    @overload
    def on_event(
        self,
        event: Event[T],
        workflow: Workflow[list[T], Any],
        /,
        *,
        batch: Batch,
        debounce: Duration | None = None,
        key: str | None = None,
    ) -> None: ...
    @overload
    def on_event(
        self, event: Event[T], workflow: Workflow[list[T], Any], /, *, debounce: Duration, key: str | None = None
    ) -> None: ...
    def on_event(
        self,
        event: Event[Any],
        workflow: Workflow[Any, Any],
        /,
        *,
        batch: Batch | None = None,
        debounce: Duration | None = None,
        key: str | None = None,
    ) -> None:
        """Starts a run of the workflow for every event of this name; or, collected, for several of them, as a list.

        Args:
            event: The event.
            workflow: What it starts: the input is the payload, or the list of payloads.
            batch: A run gets so many events, or those that came in its window.
            debounce: A run gets what came until there was no event for so long.
            key: A field of the payload ("customer.id"): events are collected apart for each of its values.

        Raises:
            ValueError: It is registered twice, or the payload has no such field.
            TypeError: The workflow takes something else.
        """
        trigger = _trigger_of(event, workflow, batch=batch, debounce=debounce, key=key)
        if any(other.workflow.name == workflow.name for other in self.triggers(event.name)):
            raise ValueError(f'event "{event.name}" starts workflow "{workflow.name}" already')
        self._triggers.setdefault(event.name, []).append(trigger)
        if trigger.collector is not None:
            self.collectors[trigger.collector.name] = trigger.collector

    def triggers(self, event: str) -> Sequence[Trigger]:
        """What an event of this name starts."""
        return self._triggers.get(event, ())


def _trigger_of(
    event: Event[Any],
    workflow: Workflow[Any, Any],
    *,
    batch: Batch | None,
    debounce: Duration | None,
    key: str | None,
) -> Trigger:
    """What `app.on_event` registers, checked."""
    what = f'app.on_event("{event.name}", {workflow.name})'
    if not workflow.takes_input:
        raise TypeError(f"{what}: the workflow takes no input, and the event brings one")
    if batch is None and debounce is None:
        if key is not None:
            raise ValueError(f"{what}: key=... is for events that are collected: add batch=... or debounce=...")
        return Trigger(event=event.name, workflow=workflow, item_type=workflow.input_type)
    if workflow.singleton is not None:
        raise TypeError(f"{what}: a singleton's key is in the input, and the input of collected events is a list")
    trigger = Trigger(
        event=event.name,
        workflow=workflow,
        item_type=_item_type(what, event, workflow),
        size=MOST if batch is None else batch.size,
        window=None if batch is None else batch.window,
        debounce=None if debounce is None else seconds(debounce, "app.on_event(debounce=...)", minimum=0.001),
        key=None if key is None else path_of(f"{what}, key={key!r}", event.type, key)[0],
    )
    collector = Workflow[Any, Any](
        name=f"{workflow.name} on {event.name}",
        version="1",
        fn=collecting(trigger),
        takes_input=False,
        input_type=type(None),
        output_type=type(None),
    )
    return replace(trigger, collector=collector)


def _item_type(what: str, event: Event[Any], workflow: Workflow[Any, Any]) -> Any:
    declared = workflow.input_type
    arguments = get_args(declared)
    if declared is not list and (get_origin(declared) is not list or len(arguments) != 1):
        raise TypeError(
            f"{what}: collected events are a list, and the workflow takes {codec.type_name(declared)}. "
            f"Declare its input as list[{codec.type_name(event.type)}]."
        )
    return arguments[0] if arguments else codec.UNTYPED
