"""An order on the local stack, with the process that charges the card killed in the middle; run it with `make demo`."""

import json
import secrets
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from durable.adapters.clock import SystemClock
from durable.cli.api import Api, run_path
from durable.cli.timeline import duration, render
from durable.local.sources import Notice
from durable.local.stack import LocalStack, StackOptions

PROJECT = Path(__file__).parents[2]
ORDER = Path(__file__).with_name("order.json")
RUN = f"order-A-1001-{secrets.token_hex(2)}"
"""New each time, so that the marker of the last demo's death does not count."""
INVOCATION_SECONDS = 6
"""Short, so that a death is noticed soon: the dead process keeps its lease for this long, and a few seconds more."""
PATIENCE = 55


class Demo:
    def __init__(self, out: Console, output: IO[str]) -> None:
        self.out = out
        self.clock = SystemClock()
        self.began = self.clock.monotonic()
        options = StackOptions(
            app="examples.orders.app:app",
            port=0,
            template=PROJECT / "template.yaml",
            timeout=INVOCATION_SECONDS,
        )
        self.deaths: list[Notice] = []
        self.stack = LocalStack(options, report=self.deaths.append, output=output)

    def run(self) -> None:
        self.say("Starting everything on this machine: emulated AWS services, and functions in processes of their own.")
        with self.stack:
            self.note(f"The API answers at {self.stack.url}.")
            self.order(Api(self.stack.url))
        self.say(
            f"Done after {duration(self.clock.monotonic() - self.began)}. Run it again with `make demo`, or try `durable dev`."
        )

    def order(self, api: Api) -> None:
        order = {**json.loads(ORDER.read_text()), "chaos": "kill-once"}
        self.say("A customer orders a teapot and four cups: POST /runs")
        started = api.post("/runs", {"workflow": "fulfil", "id": RUN, "input": order})
        self.note(f"Run {started['id']} has started.")

        self.say("The orchestrator charges the card, and its process is killed before it could write that down.")
        self.wait("the process to die", lambda: bool(self.deaths))
        self.note(f"{self.deaths[0].source}: {self.deaths[0].text}")
        self.note("Nothing is lost. The dead process still holds the run for a few seconds; then another takes over.")
        killed = self.clock.monotonic()
        self.wait("the charge", lambda: len(self.history(api)) > 0 and self.history(api)[-1]["mark"] == "")
        recovered = duration(self.clock.monotonic() - killed)
        self.note(f"Charged {recovered} later. Both attempts had one idempotency key, so the money is taken once.")

        self.say("The cooling-off period: the run sleeps. No process runs for it, nothing waits.")
        self.wait("the approval to be asked for", lambda: "signal:approve" in self.record(api)["waiting_for"])
        self.note(f"It is over. The run waits for: {self.record(api)['reason']}")

        self.say(f"Grace approves: POST {run_path(RUN, 'messages')}")
        api.post(run_path(RUN, "messages"), {"name": "approve", "body": {"approved": True, "by": "grace"}})
        self.wait("the end", lambda: self.record(api)["status"] == "completed")

        self.say("What the run has done, as `durable show` tells it:")
        self.out.print()
        self.out.print(render(self.record(api), self.history(api)))
        self.out.print()

    def record(self, api: Api) -> dict[str, Any]:
        record: dict[str, Any] = api.get(run_path(RUN))
        if record["status"] in {"failed", "blocked", "dead", "cancelled"}:
            raise RuntimeError(f"the run is {record['status']}: {record['reason'] or record['error']}")
        return record

    def history(self, api: Api) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = api.get(run_path(RUN, "history"))["entries"]
        return entries

    def wait(self, what: str, reached: Callable[[], bool]) -> None:
        end = self.clock.monotonic() + PATIENCE
        while not reached():
            if self.clock.monotonic() > end:
                raise RuntimeError(f"waited {PATIENCE} s for {what}")
            self.clock.sleep(0.2)

    def say(self, text: str) -> None:
        self.out.print()
        self.out.print(Text(text, "bold"))

    def note(self, text: str) -> None:
        self.out.print(Padding(Text(text), (0, 0, 0, 4)))


def main() -> int:
    out = Console(highlight=False)
    with tempfile.TemporaryFile("w+") as output:
        try:
            Demo(out, output).run()
        except Exception as error:  # noqa: BLE001 - whatever it was, the log of the functions tells more
            output.seek(0)
            out.print(Text(f"\nThe demo failed: {type(error).__name__}: {error}", "red"))
            out.print(Text(output.read()[-8000:], "dim"))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
