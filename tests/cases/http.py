"""Calls the API of an environment as API Gateway would."""

import json
from collections.abc import Callable
from typing import Any

from durable.local.events import HttpRequest, http_event
from durable.testing import TestEnvironment
from handlers.api import build
from handlers.runs import Runs

Call = Callable[..., dict[str, Any]]


def caller(env: TestEnvironment) -> Call:
    """`call(method, target, body)` gives what Lambda would answer: statusCode, headers, body."""
    api = build(Runs(env.app, env, env.ports))
    context: Any = type("LambdaContext", (), {"aws_request_id": "1"})()

    def call(method: str, target: str, body: Any = None) -> dict[str, Any]:
        raw = b"" if body is None else json.dumps(body).encode()
        request = HttpRequest(method, target, [("content-type", "application/json")], raw)
        return api.resolve(http_event(request, 0.0), context)

    return call
