"""The events that AWS would invoke the functions with."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

ACCOUNT: Final = "123456789012"
_TEXT: Final = ("text/", "application/json", "application/javascript", "application/xml")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came in."""

    method: str
    target: str
    """Path and query."""
    headers: Sequence[tuple[str, str]]
    body: bytes
    client: str = "127.0.0.1"


def queue_event(messages: Sequence[Mapping[str, Any]], *, queue_arn: str, region: str) -> dict[str, Any]:
    """The event of an SQS event source, from messages as ReceiveMessage answers them."""
    return {"Records": [_record(message, queue_arn, region) for message in messages]}


def _record(message: Mapping[str, Any], queue_arn: str, region: str) -> dict[str, Any]:
    body: str = message["Body"]
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": body,
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {},
        "md5OfBody": hashlib.md5(body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": region,
    }


def bus_event(messages: Sequence[Mapping[str, Any]], *, queue_arn: str, region: str) -> dict[str, Any]:  # noqa: ARG001 - as `queue_event` has it
    """The event of an EventBridge rule, from the one message that the emulated rule put into the queue."""
    (message,) = messages
    event: dict[str, Any] = json.loads(message["Body"])
    event.pop("ingestion-time", None)  # the emulator's own
    return event


def rate_event(now: float, *, rule: str, region: str) -> dict[str, Any]:
    """The event of an EventBridge rule with a rate."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": [f"arn:aws:events:{region}:{ACCOUNT}:rule/{rule}"],
        "detail": {},
    }


def http_event(request: HttpRequest, now: float, *, route: str = "$default") -> dict[str, Any]:
    """The event of an API Gateway HTTP API, payload format 2.0.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    url = urlsplit(request.target)
    path = unquote(url.path) or "/"
    headers = _joined((name.lower(), value) for name, value in request.headers if name.lower() != "cookie")
    text, encoded = _body(request.body, headers.get("content-type", ""))
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": url.query,
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "local",
            "domainName": headers.get("host", "localhost"),
            "domainPrefix": "local",
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": request.client,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": route,
            "stage": "$default",
            "time": datetime.fromtimestamp(now, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": encoded,
    }
    if cookies := [value for name, value in request.headers if name.lower() == "cookie"]:
        event["cookies"] = [cookie.strip() for line in cookies for cookie in line.split(";")]
    if query := _joined(parse_qsl(url.query, keep_blank_values=True)):
        event["queryStringParameters"] = query
    if request.body:
        event["body"] = text
    return event


def _joined(pairs: Any) -> dict[str, str]:
    """Repeated names become one value with commas, as payload format 2.0 has it."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body(body: bytes, content_type: str) -> tuple[str, bool]:
    """The body as text, and whether it had to be encoded for that: what is no text by its type, or is none at all."""
    if not content_type or content_type.startswith(_TEXT):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True
