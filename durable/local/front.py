"""The HTTP API on the loopback: every request becomes an event of the API function."""

from __future__ import annotations

import base64
import errno
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast
from urllib.parse import urlsplit

from durable.local.events import HttpRequest, http_event
from durable.local.functions import LocalFunction
from durable.local.invocation import Returned
from durable.local.sources import Report, tell
from durable.ports import Clock

HOST: Final = "127.0.0.1"
_LARGEST: Final = 6 * 1024 * 1024
"""A synchronous invocation takes 6 MB (Lambda quotas)."""
_SILENCE: Final = 30.0
"""Seconds after which a connection that says nothing is closed."""


class PortTaken(RuntimeError):
    """Somebody else listens on the port."""

    def __init__(self, port: int) -> None:
        self.port = port
        super().__init__(f"Port {port} of {HOST} is taken: is another `durable dev` running? Choose one with --port.")


class Front:
    """Listens from the moment it is built; answers once `serve` has been called."""

    def __init__(self, port: int, clock: Clock, report: Report) -> None:
        self._clock = clock
        self._report = report
        self._function: LocalFunction | None = None
        self._thread: threading.Thread | None = None
        try:
            self._server = _Server((HOST, port), _handler_for(self))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                raise PortTaken(port) from error
            raise

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self._server.server_address[1]}"

    def connect(self, function: LocalFunction) -> None:
        """Names the function that answers."""
        self._function = function

    def serve(self) -> None:
        """Answers requests until `stop`."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Closes the port."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def answer(self, request: HttpRequest) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer."""
        assert self._function is not None
        outcome = self._function.invoke(http_event(request, self._clock.now()))
        tell(outcome, self._function.name, self._report)
        if not isinstance(outcome, Returned):
            return 500, _JSON, b'{"message":"Internal Server Error"}'  # word for word what API Gateway says
        return _response(outcome.value)


_JSON: Final = {"content-type": "application/json"}


def _response(value: Any) -> tuple[int, dict[str, str], bytes]:
    """Reads the function's answer as API Gateway does: a dict with a status code, or anything else as the body."""
    if not isinstance(value, dict) or "statusCode" not in value:
        return 200, _JSON, json.dumps(value).encode()
    answer = cast("dict[str, Any]", value)
    text: str = answer.get("body") or ""
    body = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
    return int(answer["statusCode"]), {name.lower(): str(v) for name, v in answer.get("headers", {}).items()}, body


def is_own(host: str, origin: str | None) -> bool:
    """Whether a request may come from this machine's user, and not from a web page that the user has open.

    A browser sends such a page's requests to the loopback too. It tells the page by `Origin`; a page whose own name
    has been pointed at the loopback (DNS rebinding) shows in `Host`.
    """
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name in {"127.0.0.1", "localhost", "::1"} and origin in {None, f"http://{host}"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


def _handler_for(front: Front) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _SILENCE
        server_version = "durable-dev"
        sys_version = ""

        def log_message(self, format: str, *args: object) -> None: ...

        def _answer(self) -> None:
            length = self.headers.get("Content-Length", "0")
            if not is_own(self.headers.get("Host", ""), self.headers.get("Origin")):
                self._refuse(403, "This server answers programs and pages of this machine only.")
            elif not length.isdecimal() or "Transfer-Encoding" in self.headers:
                self._refuse(411, "Send a Content-Length.")
            elif int(length) > _LARGEST:
                self._refuse(413, f"The request is larger than {_LARGEST} bytes.")
            else:
                body = self.rfile.read(int(length))
                client = str(self.client_address[0])
                self._send(*front.answer(HttpRequest(self.command, self.path, self.headers.items(), body, client)))

        def _refuse(self, status: int, message: str) -> None:
            self.close_connection = True  # its body is still to come, and nobody will read it
            self._send(status, {**_JSON, "connection": "close"}, json.dumps({"message": message}).encode())

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name != "content-length":
                    self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815 - http.server's names

    return Handler
