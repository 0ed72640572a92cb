"""`durable worker`: performs the remote steps of one queue in this process, until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from durable.cli.loading import load_app
from durable.cli.timeline import printable

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console

    from durable.app import App
    from durable.engine.serving import Serving
    from durable.model.task import StepTask, TaskOutcome

_GLANCE: Final = 0.2
"""Seconds between two looks whether to stop sooner."""


def add_working(cli: typer.Typer, out: Console, err: Console) -> None:
    """Adds the command."""

    @cli.command()
    def worker(
        queue: Annotated[str, typer.Option(help="The queue, as the remote steps name it.")] = "default",
        app: Annotated[
            str, typer.Option(envvar="DURABLE_APP", help="The App object, as package.module:name.", show_default=False)
        ] = "",
        concurrency: Annotated[int, typer.Option(min=1, max=256, help="Tasks that are performed side by side.")] = 1,
        grace: Annotated[
            float, typer.Option(min=0, help="Seconds that tasks have to end when the worker is stopped.")
        ] = 25.0,
    ) -> None:
        """Perform the remote steps of a queue here. Where the deployment is say the variables DURABLE_..."""
        if not app:
            raise typer.BadParameter("name the app, as package.module:name", param_hint="--app")
        raise typer.Exit(_work(load_app(app), app, queue, concurrency, grace, out, err))


def _work(app: App[Any], place: str, queue: str, concurrency: int, grace: float, out: Console, err: Console) -> int:
    # The SDK is slow to import, and no other command needs it.
    from durable.aws import aws_ports, make_clients, task_source  # noqa: PLC0415 - see above
    from durable.engine.serving import Serving  # noqa: PLC0415 - see above
    from durable.engine.worker import RemoteWorker  # noqa: PLC0415 - see above
    from durable.errors import InvalidInput  # noqa: PLC0415 - see above
    from durable.settings import Settings  # noqa: PLC0415 - see above

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    try:
        settings = Settings.from_environment(app=place)
        clients = make_clients()
        ports = aws_ports(settings, clients, codec=app.codec)
        source = task_source(settings, clients, queue)
    except InvalidInput as error:
        err.print(Text(str(error), "red"))
        return 1
    if source is None:
        known = ", ".join(sorted(settings.steps_queues)) or "none"
        err.print(Text(f'"{queue}" has no queue of its own in DURABLE_STEPS_QUEUES (there: {known})', "red"))
        return 1
    name = f"{socket.gethostname()}:{os.getpid()}"

    def told(task: StepTask, outcome: TaskOutcome) -> None:
        out.print(_line(task, outcome, ports.clock.now()), soft_wrap=True)

    serving = Serving(RemoteWorker(app, ports, name=name, told=told), source, concurrency=concurrency)
    steps = ", ".join(sorted(app.remote_steps)) or "nothing"
    out.print(Text(f"{name} serves {queue}: {steps} (Ctrl-C stops it)", "dim"), soft_wrap=True)
    return run_until_stopped(serving, grace, out)


def run_until_stopped(serving: Serving, grace: float, out: Console) -> int:
    """Returns once it was told to stop and holds nothing more; told twice, or after `grace`, it gives back what it holds."""
    asked: list[int] = []  # a handler of signals must take no lock that it may have interrupted

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    glance = threading.Event()
    try:
        serving.start()
        while not asked:
            glance.wait(_GLANCE)
        out.print(Text("stopping: what has begun may end ...", "dim"))
        serving.stop()
        left = grace
        while not serving.wait(_GLANCE) and left > 0 and len(asked) == 1:
            left -= _GLANCE
        if returned := serving.give_back():
            out.print(Text(f"gave back {returned} of them", "yellow"))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _line(task: StepTask, outcome: TaskOutcome, now: float) -> Text:
    text = f"{task.run_id} {task.location} attempt {task.attempt}: {now - outcome.started_at:.1f} s "
    if outcome.error is None:
        return Text.assemble(printable(text), ("done", "green"))
    return Text.assemble(printable(text), (printable(f"failed: {outcome.error}"), "red"))
