"""Publishing events: to every run that waits for one, and to the workflows that it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, overload

from typing_extensions import TypeVar

from durable import codec
from durable.channels import Event
from durable.client.part import ClientPart
from durable.errors import InvalidInput
from durable.model.duration import Duration, seconds
from durable.model.envelope import Publish
from durable.model.ids import check_message_id, check_name
from durable.model.limits import PAYLOAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

LONGEST_BUFFER: Final = 14 * 86_400.0


class Publishing(ClientPart):
    """The part of the client that tells what has happened, to whom it may concern."""

    @overload
    def publish_event(
        self,
        event: Event[T],
        payload: T,
        /,
        *,
        id: str | None = None,
        buffer: Duration | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str: ...
    @overload
    def publish_event(
        self,
        event: str,
        payload: object,
        /,
        *,
        id: str | None = None,
        buffer: Duration | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str: ...
    def publish_event(
        self,
        event: Any,
        payload: Any,
        /,
        *,
        id: str | None = None,
        buffer: Duration | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Publishes an event; when this returns, it is durably accepted. Its id: the same id is one event.

        Args:
            event: The event, or its name; then the payload is JSON data.
            payload: What has happened.
            id: The event's id, unique among all events; a new one if it is left out.
            buffer: Keeps it for so long, at most 14 days, if no run waits for it now: for each run that comes to wait.
            headers: For the runs that it starts.

        Raises:
            InvalidInput: The payload does not fit the event's type.
            LimitExceeded: The payload is larger than 256 KB: an event is told to many, and each would have a copy.
        """
        name, text = _name(event), _body(event, payload)
        event_id = self.ports.new_id() if id is None else check_message_id(id)
        kept = 0.0 if buffer is None else seconds(buffer, "publish_event(buffer=...)", minimum=0.0)
        if kept > LONGEST_BUFFER:
            raise InvalidInput("publish_event(buffer=...)", f"it is at most 14 days, not {kept:g} s")
        carried, now = self._headers(headers), self.ports.clock.now()
        self.ports.timers.send(Publish(event=name, id=event_id, body=text, at=now, buffer=kept, headers=carried))
        return event_id


def _name(event: object) -> str:
    if isinstance(event, Event):
        return event.name
    if not isinstance(event, str):
        raise TypeError(f"publish_event() takes an Event, or a name, not {event!r}")
    return check_name("event name", event)


def _body(event: Event[Any] | str, payload: object) -> str:
    if isinstance(event, str):
        return codec.encode(payload, codec.UNTYPED, what=f'the payload of event "{event}"', limit=PAYLOAD_BYTES)
    what = f'the payload of event "{event.name}"'
    return codec.encode(codec.validated(payload, event.type, what=what), event.type, what=what, limit=PAYLOAD_BYTES)
