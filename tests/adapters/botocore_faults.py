"""A line between a botocore client and its emulator on which chosen requests go wrong."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from botocore.awsrequest import AWSResponse

from durable.aws import CONFIG
from tests.contract.strict import check

Perform = Callable[..., AWSResponse]
"""Has the effect, and gives the emulator's reply; an argument is sent as body in place of what the client sends."""


@dataclass(frozen=True, slots=True)
class Request:
    service: str
    operation: str
    url: str
    body: Any
    """What the client sends, as JSON where it is JSON."""


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    happen: Callable[[Request, Perform], AWSResponse]
    """Gives another reply, or raises what botocore's HTTP session would."""
    at: frozenset[str] = frozenset()
    """Operations that it can happen to; all of them if none is named."""
    attempts: int = CONFIG.retries["total_max_attempts"]  # type: ignore[attr-defined]
    """How often in a row it must happen until the caller learns of it; 1 where nobody below tries again."""

    def applies_to(self, operation: str) -> bool:
        return not self.at or operation in self.at

    def __str__(self) -> str:
        return self.name


class Line:
    """Lists the calls, and lets one of them go wrong for some attempts, or one attempt in so many."""

    def __init__(self, emulator: Callable[[str, Any], Any]) -> None:
        self.calls: list[str] = []
        """The operations that were called; an attempt that botocore repeats by itself is the same call."""
        self.happened: list[Fault] = []
        self._emulator = emulator
        self._services: dict[str, str] = {}
        self._plan: Callable[[str], Fault | None] = lambda _: None

    def attach(self, client: Any, *operations: str) -> None:
        """Leads all requests of the client over this line, or those of some operations."""
        known = client.meta.service_model
        service: str = known.service_name
        self._services[known.service_id.hyphenize()] = service
        for suffix in [f".{name}" for name in operations] or [""]:
            client.meta.events.register(f"before-call.{service}{suffix}", self._count)
            client.meta.events.register_first(f"before-send.{service}{suffix}", self._send)
        if service == "dynamodb":
            client.meta.events.register(f"before-parameter-build.{service}", check)

    def fail(self, fault: Fault, *, call: int, attempts: int) -> None:
        """So many attempts of the call with this number from now go wrong; the first is number 0."""
        number = len(self.calls) + call + 1
        ended = len(self.happened) + attempts

        def plan(operation: str) -> Fault | None:
            is_it = len(self.calls) >= number and len(self.happened) < ended and fault.applies_to(operation)
            return fault if is_it else None

        self._plan = plan

    def fail_often(self, faults: Sequence[Fault], *, burst: int, every: int) -> None:
        """Of so many attempts as `every` the first `burst` go wrong, each time in another of these ways."""
        attempts = 0

        def plan(operation: str) -> Fault | None:
            nonlocal attempts
            turn, place = divmod(attempts, every)
            attempts += 1
            if place >= burst:
                return None
            fitting = [fault for fault in faults if fault.applies_to(operation)]
            return fitting[turn % len(fitting)]

        self._plan = plan

    def mend(self) -> None:
        self._plan = lambda _: None

    def _count(self, model: Any, **more: Any) -> None:
        self.calls.append(model.name)

    def _send(self, event_name: str, request: Any, **more: Any) -> Any:
        _, service, operation = event_name.split(".")
        fault = self._plan(operation)
        if fault is None:
            return self._emulator(event_name, request)
        self.happened.append(fault)

        def perform(instead: Any = None) -> AWSResponse:
            sent = request.body
            if instead is not None:
                request.body = json.dumps(instead).encode()
            try:
                return self._emulator(event_name, request)
            finally:
                request.body = sent

        return fault.happen(Request(self._services[service], operation, request.url, _read(request.body)), perform)


def _read(body: Any) -> Any:
    return json.loads(body) if isinstance(body, bytes) and body.startswith(b"{") else body


class Raw(BytesIO):
    """The body of a reply as botocore reads it; with an error, a connection that is cut behind the content."""

    def __init__(self, content: bytes, error: Exception | None = None) -> None:
        super().__init__(content)
        self._error = error

    def read(self, *arguments: Any) -> bytes:
        part = super().read(*arguments)
        if self._error is not None:
            raise self._error
        return part

    def stream(self, **_: Any) -> Any:
        while part := self.read(65536):
            yield part


def reply(request: Request, status: int, body: bytes, **headers: str) -> AWSResponse:
    return AWSResponse(request.url, status, {"content-length": str(len(body)), **headers}, Raw(body))  # type: ignore[arg-type]


def refusal(request: Request, code: str, status: int = 400, *, once: str = "", **fields: Any) -> AWSResponse:
    """An error in the shape of the service's protocol; `once` is the code that it had in the protocol before."""
    if request.service == "s3":
        text = f"<Error><Code>{code}</Code><Message>made to fail</Message></Error>"
        return reply(request, status, text.encode())
    told: dict[str, Any] = {"__type": f"com.amazonaws#{code}", "message": "made to fail", **fields}
    headers = {"x-amzn-query-error": f"{once};Sender"} if once else {}
    return reply(request, status, json.dumps(told).encode(), **{"x-amzn-errortype": code, **headers})


def result(request: Request, **fields: Any) -> AWSResponse:
    return reply(request, 200, json.dumps(fields).encode())
