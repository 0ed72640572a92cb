"""Routes for outside systems: a signed token in the path is their credential, so it is never shown or logged."""

from __future__ import annotations

import base64
import contextlib
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aws_lambda_powertools.event_handler.api_gateway import Response
from pydantic_core import from_json

from durable.errors import InvalidInput, RunEnded, RunNotFound
from durable.model.hook import HookRequest
from handlers import problems
from handlers.answers import answer, body_of, query_of, raw_body
from handlers.problems import Problem, Refused
from handlers.requests import CompletionRequest, FailureRequest, HeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver

    from durable.client import Client

T = TypeVar("T")

_TAKE_TOKENS: Final = frozenset({"hooks", "callbacks", "tasks"})
_IDS: Final = ("webhook-id", "idempotency-key")
"""Headers with which senders number their calls (https://www.standardwebhooks.com has the first)."""

_OURS: Final = frozenset(
    {"host", "authorization", "cookie", "x-forwarded-for", "x-forwarded-port", "x-forwarded-proto"}
)
"""Headers that tell nothing about the call, or are nobody's business."""


def without_token(path: str) -> str:
    """A path as it may be shown."""
    parts = path.split("/")
    if len(parts) > 2 and parts[1] in _TAKE_TOKENS:  # "", the route, the token
        parts[2] = "{token}"
    return "/".join(parts)


def add_outside(api: APIGatewayHttpResolver, client: Client) -> None:
    """Adds the routes."""
    # At level DEBUG the resolver tells the path of every request, and the token is in it.
    logging.getLogger("aws_lambda_powertools.event_handler.api_gateway").setLevel(logging.INFO)
    _add_callbacks(api, client)
    _add_hooks(api, client)


def _add_callbacks(api: APIGatewayHttpResolver, client: Client) -> None:
    @api.post("/callbacks/<token>/complete")
    def complete(token: str) -> Response[str]:
        query_of(api)
        request = body_of(api, CompletionRequest, optional=True)
        return _accepted(lambda: client.complete_callback(token, request.result))

    @api.post("/callbacks/<token>/fail")
    def fail(token: str) -> Response[str]:
        query_of(api)
        request = body_of(api, FailureRequest)
        return _accepted(lambda: client.fail_callback(token, request.told, retryable=request.retryable))

    @api.post("/callbacks/<token>/heartbeat")
    def heartbeat(token: str) -> Response[str]:
        query_of(api)
        request = body_of(api, HeartbeatRequest, optional=True)
        return _accepted(lambda: client.heartbeat_callback(token, request.progress))


def _add_hooks(api: APIGatewayHttpResolver, client: Client) -> None:
    @api.post("/hooks/<token>")
    def call(token: str) -> Response[str]:
        headers: Mapping[str, str] = api.current_event.headers
        number = next((headers[name] for name in _IDS if headers.get(name)), None)
        payload = _whole(api) if client.webhook_wants_whole(token) else _payload(api)
        response = _unless_gone(lambda: client.call_webhook(token, payload, id=number))
        return _plain(response.status, response.content_type, response.body, response.headers)

    @api.get("/hooks/<token>")
    def check(token: str) -> Response[str]:
        challenge = client.webhook_response(token).challenge
        if challenge is None:
            detail = "This address takes POST only: its webhook names no challenge to answer."
            raise Refused(problems.plain(HTTPStatus.METHOD_NOT_ALLOWED, detail, {"allow": "POST"}))
        query: Mapping[str, str] = api.current_event.query_string_parameters or {}
        if challenge not in query:
            raise InvalidInput("the query", f"it has no {challenge}")
        return _plain(HTTPStatus.OK, "text/plain; charset=utf-8", query[challenge], {})


def _accepted(act: Callable[[], None]) -> Response[str]:
    _unless_gone(act)
    return answer({"status": "accepted"}, HTTPStatus.ACCEPTED)


def _unless_gone(act: Callable[[], T]) -> T:
    """A run that is over will never take an answer: 410 tells senders not to try again."""
    try:
        return act()
    except (RunEnded, RunNotFound) as gone:
        title = "Nobody waits for that any more"
        raise Refused(Problem(status=410, type="run-ended", title=title, detail=str(gone))) from gone


def _whole(api: APIGatewayHttpResolver) -> HookRequest:
    """The request as it came: a provider's signature is over its bytes and some of its headers."""
    event = api.current_event
    body, is_base64 = event.body or "", bool(event.is_base64_encoded)
    if is_base64:
        with contextlib.suppress(UnicodeDecodeError):
            body, is_base64 = base64.b64decode(body).decode(), False
    headers = {name.lower(): value for name, value in event.headers.items() if name.lower() not in _OURS}
    return HookRequest(body=body, is_base64=is_base64, headers=headers, query=dict(event.query_string_parameters or {}))


def _payload(api: APIGatewayHttpResolver) -> Any:
    """JSON data; text of another kind as it is, and what is no text in base64."""
    raw = raw_body(api)
    if not raw:
        return None
    kind = (api.current_event.headers.get("content-type") or "").partition(";")[0].strip().lower()
    says_json = kind == "application/json" or kind.endswith("+json")
    if says_json or not kind:
        try:
            return from_json(raw, allow_inf_nan=False)
        except ValueError as error:
            if says_json:
                raise Refused(problems.malformed(f"The body is not JSON: {error}")) from None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()


def _plain(status: int, content_type: str, body: str, headers: Mapping[str, str]) -> Response[str]:
    """An answer in somebody else's words: no browser is to take it for more than it says it is."""
    return Response(int(status), content_type, body, headers={**headers, "x-content-type-options": "nosniff"})
