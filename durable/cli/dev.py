"""`durable dev`: the local stack in the foreground, until Ctrl-C."""

from __future__ import annotations

import signal
from pathlib import Path

from rich.console import Console
from rich.text import Text

from durable.local.emulator import EmulatorFailed
from durable.local.front import PortTaken
from durable.local.sources import Notice
from durable.local.stack import LocalStack, StackFailed, StackOptions


def run_stack(*, app: str, port: int, template: Path, timeout: int | None, out: Console, err: Console) -> int:
    """Returns when the user has had enough; 1 if the stack could not start."""

    def report(notice: Notice) -> None:
        err.print(Text(f"{notice.source}: {notice.text}", "yellow"))

    stack = LocalStack(StackOptions(app=app, port=port, template=template, timeout=timeout), report=report)
    # Both end it in order; a shell that starts it in the background would have it ignore the first.
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    code = 0
    try:
        out.print(Text(f"starting {app} ...", "dim"))
        stack.start()
        out.print(_welcome(stack, app))
        stack.wait()
        err.print(Text("The emulated AWS services have ended; what was stored is gone.", "red"))
        code = 1
    except KeyboardInterrupt:
        out.print(Text("stopping ...", "dim"))
    except (PortTaken, StackFailed, EmulatorFailed) as error:
        err.print(Text(str(error), "red"))
        code = 1
    finally:
        # Once is enough: an impatient second Ctrl-C must not leave processes behind.
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        stack.stop()
        for number, handler in before.items():
            signal.signal(number, handler)
    return code


def _welcome(stack: LocalStack, app: str) -> Text:
    url = stack.url
    option = "" if url.endswith(":8321") else f" --url {url}"
    return Text.assemble(
        (f"{app} runs at {url}", "bold green"),
        "   (Ctrl-C ends it; nothing is kept)\n",
        f"  durable start WORKFLOW JSON{option}\n",
        f"  durable show RUN{option}\n",
        (f"  emulated AWS services at {stack.endpoint}", "dim"),
    )
