"""The emulated AWS services (moto), in a process of their own that answers one request at a time.

Run as a program it is that process. moto is not safe for threads, so its server must not have any.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from types import TracebackType
from typing import Final, Self

_HOST: Final = "127.0.0.1"


class EmulatorFailed(RuntimeError):
    """The emulator's process did not come up."""

    def __init__(self, code: int | None) -> None:
        super().__init__(
            f"The emulated AWS services did not start (exit code {code}). "
            'Are the local extras installed? python -m pip install "durable-lambda[local]"'
        )


class Emulator:
    """A moto server for as long as the `with` block lasts; nothing is kept beyond it."""

    def __init__(self) -> None:
        # A session of its own: Ctrl-C is for us, who still need the services to shut down in order.
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__ if __name__ != "__main__" else "durable.local.emulator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._endpoint: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        """The server's address; waits until it listens.

        Raises:
            EmulatorFailed: its process ended instead.
        """
        if self._endpoint is None:
            assert self._process.stdout is not None
            port = self._process.stdout.readline().strip()
            if not port:
                raise EmulatorFailed(self._process.wait())
            self._endpoint = f"http://{_HOST}:{int(port)}"
        return self._endpoint

    def wait(self) -> None:
        """Returns when the process has ended, which it does of itself only in trouble."""
        self._process.wait()

    def stop(self) -> None:
        """Ends the process; all that was stored is gone."""
        self._process.kill()
        self._process.communicate()


def _serve() -> None:
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415 - slow, and not for the parent # pyright: ignore[reportMissingTypeStubs]
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415 - an extra

    class Quiet(MotoRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None: ...

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = make_server(
        _HOST, 0, DomainDispatcherApplication(create_backend_app), threaded=False, request_handler=Quiet
    )
    print(server.server_port, flush=True)  # noqa: T201 - the parent reads it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    server.serve_forever()


def _end_with_parent() -> None:
    """The pipe ends when the parent does, however it ended; no emulator is left behind."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    _serve()
