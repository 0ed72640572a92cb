"""Routes that publish events."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from durable import codec
from durable.errors import InvalidInput
from durable.model.duration import seconds
from handlers.answers import answer, body_of, headers_of, query_of, raw_body
from handlers.requests import EventRequest

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response

    from durable.client import Client


def add_happenings(api: APIGatewayHttpResolver, client: Client) -> None:
    """Adds the routes."""

    @api.post("/events/<name>")
    def publish(name: str) -> Response[str]:
        """The body is the payload."""
        query = query_of(api, "buffer")
        key = api.current_event.headers.get("idempotency-key")
        return published(unquote(name), _payload(api), key, query.get("buffer"))

    @api.post("/events")
    def named() -> Response[str]:
        """For names that do not fit into a path."""
        query_of(api)
        request = body_of(api, EventRequest)
        return published(request.name, request.payload, request.id, request.buffer)

    def published(name: str, payload: Any, id: str | None, buffer: str | None) -> Response[str]:
        event_id = client.publish_event(name, payload, id=id, buffer=_seconds(buffer), headers=headers_of(api))
        return answer({"id": event_id, "name": name}, HTTPStatus.ACCEPTED)


def _payload(api: APIGatewayHttpResolver) -> Any:
    return codec.parsed(raw_body(api) or b"null", codec.UNTYPED, what="the payload")


def _seconds(buffer: str | None) -> float | None:
    if not buffer:
        return None
    try:
        return seconds(buffer, "buffer", minimum=0.0)
    except ValueError as error:
        raise InvalidInput("buffer", str(error)) from None
