"""What the parts of the client have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from durable.client import reading
from durable.errors import RunEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from durable.app import App
    from durable.model.run import Run
    from durable.ports import Ports

T = TypeVar("T")

FIRST_LOOK: Final = 0.05
LATER_LOOKS: Final = 1.6
LONGEST_PAUSE: Final = 3.0
"""A caller that waits looks after 50 ms, then ever more rarely, at last every 3 s."""


class ClientPart:
    """A part of the client: the app and the ports that it works with."""

    def __init__(self, app: App[Any], ports: Ports, /) -> None:
        self.app = app
        self.ports = ports

    def get(self, run_id: str) -> Run:
        """The run as it is: status, reason, what it waits for, error; raises RunNotFound.

        Of a run that has continued as new it is the last of its lineage, under its own id.
        """
        return reading.last_of_lineage(self.ports, run_id)

    def _headers(self, given: Mapping[str, str] | None) -> dict[str, str]:
        """What travels with something that this client starts: what it was given, or what the app's carriers capture."""
        return self.app.carriers.headers(given)

    def _open_run(self, run_id: str) -> Run:
        run = self.get(run_id)
        if run.ended:
            raise RunEnded(run_id, run.status)
        return run

    def _until(self, run_id: str, look: Callable[[], T | None], timeout: float | None) -> T | None:  # noqa: ARG002 - the test kit lets that run go on
        """What `look` finds, as soon as it finds something; None after `timeout` seconds. It is about the run."""
        clock = self.ports.clock
        began, pause = clock.monotonic(), FIRST_LOOK
        while (found := look()) is None:
            left = LONGEST_PAUSE if timeout is None else began + timeout - clock.monotonic()
            if left <= 0:
                return None
            clock.sleep(min(pause, left))
            pause = min(LONGEST_PAUSE, pause * LATER_LOOKS)
        return found
