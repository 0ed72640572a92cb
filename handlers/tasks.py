"""Routes for workers in any language: claim a task of a queue, then tell with its token how it goes."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler.api_gateway import Response

from handlers.answers import answer, body_of, query_of
from handlers.requests import ClaimRequest, CompletionRequest, HeartbeatRequest, TaskFailureRequest

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver

    from durable.engine.claims import Claimed, TaskClaims


def add_tasks(api: APIGatewayHttpResolver, claims: TaskClaims) -> None:
    """Adds the routes."""

    @api.post("/queues/<queue>/claim")
    def claim(queue: str) -> Response[str]:
        query_of(api)
        request = body_of(api, ClaimRequest, optional=True)
        claimed = claims.claim(unquote(queue), worker=request.worker, wait=request.wait)
        return Response(int(HTTPStatus.NO_CONTENT), body="") if claimed is None else answer(_view(claimed))

    @api.post("/tasks/<token>/heartbeat")
    def heartbeat(token: str) -> Response[str]:
        query_of(api)
        request = body_of(api, HeartbeatRequest, optional=True)
        return _told(claims.heartbeat(token, request.progress))

    @api.post("/tasks/<token>/complete")
    def complete(token: str) -> Response[str]:
        query_of(api)
        request = body_of(api, CompletionRequest, optional=True)
        return _told(claims.complete(token, request.result))

    @api.post("/tasks/<token>/fail")
    def fail(token: str) -> Response[str]:
        query_of(api)
        request = body_of(api, TaskFailureRequest)
        return _told(claims.fail(token, request.told, retryable=request.retryable, retry_after=request.retry_after))


def _told(wanted: bool) -> Response[str]:
    return answer({"cancelled": not wanted})


def _view(claimed: Claimed) -> dict[str, Any]:
    task = claimed.task
    call = json.loads(task.input)
    return {
        "token": claimed.token,
        "task": {
            "name": task.name,
            "args": call["args"],
            "kwargs": call["kwargs"],
            "attempt": task.attempt,
            "run_id": task.run_id,
            "location": task.location,
            "queue": task.queue,
            "idempotency_key": task.idempotency_key,
            "timeout": claimed.left,
            "heartbeat": task.heartbeat,
            "headers": dict(task.headers),
        },
    }
