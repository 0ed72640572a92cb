"""The commands. Exit codes: 0 done, 1 refused or failed, 2 called the wrong way, 3 not yet."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from durable.cli.api import Refusal, Unreachable, run_path
from durable.cli.callbacks import callbacks
from durable.cli.happenings import add_publishing
from durable.cli.looking import add_looking
from durable.cli.replay import add_replaying
from durable.cli.reviews import reviews
from durable.cli.steering import add_steering
from durable.cli.terminal import LOCAL, AsJson, RunId, Url, api_at, err, given, json_argument, out, print_answer
from durable.cli.timeline import printable
from durable.cli.watch import add_watching
from durable.cli.worker import add_working

cli = typer.Typer(
    name="durable",
    help="Long-lived workflows: run them here, start them, see what they do.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


class OnConflict(StrEnum):
    """What a start does with a run that the same start has created."""

    RETURN = "return"
    ERROR = "error"


def run(arguments: list[str] | None = None) -> int:
    """Runs one command; the exit code."""
    try:
        cli(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except (Refusal, Unreachable) as error:
        err.print(Text(printable(str(error)), "red"))
        return 1
    return 0


@cli.command()
def start(
    workflow: Annotated[str, typer.Argument(help="The workflow's name.")],
    input: Annotated[str | None, typer.Argument(help="Its input: JSON, @file, or - for standard input.")] = None,
    id: Annotated[str | None, typer.Option(help="The run's id; made up if not given.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key starts one run only.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    on_conflict: Annotated[
        OnConflict | None, typer.Option(help="If the same start has been made before: give that run, or fail.")
    ] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Start a run and print its id."""
    body = given({"workflow": workflow, "id": id, "tags": tag or [], "on_conflict": on_conflict})
    if input is not None:  # an input that is null is not the same as none
        body["input"] = json_argument(input)
    headers = {"idempotency-key": key} if key else {}
    answer = api_at(url).post("/runs", body, headers)
    print_answer(answer, as_json, Text(answer["id"]))


@cli.command()
def send(
    run_id: RunId,
    name: Annotated[str, typer.Argument(help="The signal's name.")],
    body: Annotated[str | None, typer.Argument(help="Its body: JSON, @file, or - for standard input.")] = None,
    id: Annotated[str | None, typer.Option(help="The message's id: the same id is consumed once.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Send a message to a run."""
    message = {"name": name, "body": json_argument(body), **({"id": id} if id else {})}
    answer = api_at(url).post(run_path(run_id, "messages"), message)
    print_answer(answer, as_json, Text(f"accepted {answer['id']}"))
    waits = answer.get("waiting_for") or ()
    if waits and not {"*", f"signal:{name}"}.intersection(waits):
        asked = ", ".join(f'{kind} "{of}"' if of else kind for kind, _, of in (wait.partition(":") for wait in waits))
        err.print(Text(printable(f'The run waits for {asked}; nothing asks for "{name}" yet.'), "yellow"))


add_steering(cli)
add_publishing(cli)
add_looking(cli)
add_watching(cli)
cli.add_typer(reviews)
cli.add_typer(callbacks)
add_replaying(cli, api_at, out, err, LOCAL)
add_working(cli, out, err)


@cli.command()
def dev(
    app: Annotated[str, typer.Option(help="The App object, as package.module:name.")] = "examples.orders.app:app",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the API on 127.0.0.1; 0 picks a free one.")
    ] = 8321,
    template: Annotated[Path, typer.Option(help="The SAM template.")] = Path("template.yaml"),
    timeout: Annotated[
        int | None,
        typer.Option(min=6, max=900, help="Seconds of an orchestrator invocation; a crash is noticed about that late."),
    ] = None,
) -> None:
    """Run everything on this machine: AWS emulated, functions, queues, timers, schedules and the API."""
    module, separator, name = app.partition(":")
    if not (separator and name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise typer.BadParameter(f"{app!r} is no app; write it as package.module:name", param_hint="--app")
    from durable.cli.dev import run_stack  # noqa: PLC0415 - the local stack is an extra, and slow to import

    raise typer.Exit(run_stack(app=app, port=port, template=template, timeout=timeout, out=out, err=err))
