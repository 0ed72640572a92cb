"""Catches workflow code at I/O and at blocking calls while a test runs it, whatever library makes them."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final

from durable.errors import NotAllowedInWorkflow
from durable.loop import WorkflowLoop, running_loop

_CALLS: Final = {
    "socket.connect": ("network I/O", "do it in a step: await ctx.step(fetch, url)"),
    "socket.getaddrinfo": ("network I/O", "do it in a step: await ctx.step(fetch, url)"),
    "time.sleep": ("time.sleep()", "await ctx.sleep(...)"),
    "subprocess.Popen": ("starting a program", "do it in a step"),
    "os.system": ("starting a program", "do it in a step"),
}
"""Audit events (https://docs.python.org/3/library/audit_events.html; `time.sleep` from Python 3.13 on)."""


class Watch:
    """Listens for the whole process; what it has caught is told to whoever asks."""

    def __init__(self) -> None:
        self._caught: list[str] = []
        sys.addaudithook(self._hear)

    def take(self) -> list[str]:
        """What was caught since the last call."""
        caught, self._caught = self._caught, []
        return caught

    def _hear(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if event not in _CALLS:
            return
        loop = running_loop()
        if isinstance(loop, WorkflowLoop):
            error = NotAllowedInWorkflow(*_CALLS[event])
            self._caught.append(str(error))
            raise loop.fail(error)


@cache
def watch() -> Watch:
    """The one of this process: an audit hook cannot be taken away again."""
    return Watch()
