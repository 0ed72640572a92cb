"""The API of an app over in-memory ports, at an address of this machine."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from durable.cli.commands import run
from durable.local.events import HttpRequest, http_event
from durable.testing import TestEnvironment
from handlers.api import build
from handlers.runs import Runs

Output = Callable[..., tuple[int, str, str]]
"""Exit code, standard output and standard error of a command."""


@contextmanager
def served(env: TestEnvironment) -> Iterator[str]:
    """The address; after each request whatever is due happens."""
    api = build(Runs(env.app, env, env.ports))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None: ...

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            event = http_event(HttpRequest(self.command, self.path, self.headers.items(), body), 0.0)
            answered = api.resolve(event, object())  # type: ignore[arg-type]
            env.run_until_idle()
            self.send_response(answered["statusCode"])
            self.end_headers()
            self.wfile.write((answered["body"] or "").encode())

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - http.server's names

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def commands(url: str, capsys: Any) -> Output:
    """Calls `durable` with the arguments, against the address."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run([*arguments, "--url", url])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
