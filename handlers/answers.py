"""Reading what a request carries and writing what it is answered: JSON both ways."""

from __future__ import annotations

import base64
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aws_lambda_powertools.event_handler.api_gateway import Response
from pydantic import ValidationError

from durable.errors import InvalidInput, LimitExceeded
from durable.model.headers import headers_of_request
from handlers import problems
from handlers.problems import Refused
from handlers.requests import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver

R = TypeVar("R", bound=Request)

LONGEST_WAIT: Final = 25
"""Seconds that a request may wait for something; API Gateway gives an integration 30 (quotas of HTTP APIs)."""
LARGEST_ANSWER: Final = 6 * 1024 * 1024 - 64 * 1024
"""Bytes of an answer's body (Lambda quotas: 6 MB for all that is sent)."""
_JSON: Final = "application/json"


def body_of(api: APIGatewayHttpResolver, model: type[R], *, optional: bool = False) -> R:
    """The body of the request that is being handled; an absent one is an empty one where it is optional."""
    raw = raw_body(api)
    try:
        return model.model_validate_json(b"{}" if optional and not raw.strip() else raw)
    except ValidationError as error:
        raise Refused(problems.invalid("The request", error, tuple(model.model_fields))) from None


def raw_body(api: APIGatewayHttpResolver) -> bytes:
    """The bytes of the request's body, however Lambda was given them."""
    event = api.current_event
    text = event.body or ""
    return base64.b64decode(text) if event.is_base64_encoded else text.encode()


def headers_of(api: APIGatewayHttpResolver) -> Mapping[str, str] | None:
    """What the request gives a run to pass on; None where it says nothing of the kind."""
    return headers_of_request({name.lower(): value for name, value in api.current_event.headers.items()}) or None


def query_of(api: APIGatewayHttpResolver, *known: str) -> Mapping[str, str]:
    """The parameters of the query string; refuses those that the route does not know."""
    query: Mapping[str, str] = api.current_event.query_string_parameters or {}
    check_known(query, known)
    return query


def check_known(query: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Refuses a misspelt parameter: without it the answer would be about something else."""
    if unknown := sorted(set(query) - set(known)):
        raise InvalidInput("the query", f"there is no {', '.join(unknown)}; it takes {', '.join(known) or 'nothing'}")


def whole_number(query: Mapping[str, str], name: str, *, default: int, smallest: int, largest: int) -> int:
    """A parameter that is a number within limits."""
    text = query.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and smallest <= int(text) <= largest):
        raise InvalidInput(name, f"{text[:20]!r} is not a number from {smallest} to {largest}")
    return int(text)


def wait_of(query: Mapping[str, str], *, default: int) -> int:
    """How many seconds the caller will wait."""
    return whole_number(query, "wait", default=default, smallest=0, largest=LONGEST_WAIT)


def answer(value: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response[str]:
    """A JSON answer; LimitExceeded where Lambda would refuse to send it, which callers would see as a fault of ours."""
    text = json.dumps(value, ensure_ascii=False)
    if (size := bytes_sent(text)) > LARGEST_ANSWER:
        raise LimitExceeded("the answer", size, LARGEST_ANSWER, instead="Ask for less, or read it with the client.")
    return Response(int(status), _JSON, text, headers=dict(headers or {}))


def bytes_sent(text: str) -> int:
    """Bytes of a text in what Lambda sends: an answer's body is a JSON text inside of JSON."""
    return len(json.dumps(text))
