"""The commands. Exit codes: 0 done, 1 refused or failed, 2 called the wrong way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from durable.cli.api import Api, Refusal, Unreachable, run_path
from durable.cli.replay import add_replaying
from durable.cli.timeline import STATUS_STYLE, printable, render

cli = typer.Typer(
    name="durable",
    help="Long-lived workflows: run them here, start them, see what they do.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
out: Final = Console(highlight=False, soft_wrap=False)
err: Final = Console(stderr=True, highlight=False)

Url = Annotated[
    str, typer.Option("--url", envvar="DURABLE_URL", help="Address of the deployment's API.", show_default=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]
LOCAL: Final = "http://127.0.0.1:8321"


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
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Start a run and print its id."""
    body: dict[str, Any] = {"workflow": workflow, "input": _json_argument(input), "id": id, "tags": tag or []}
    headers = {"idempotency-key": key} if key else {}
    answer = _api(url).post("/runs", {name: value for name, value in body.items() if value is not None}, headers)
    _print(answer, as_json, Text(answer["id"]))


@cli.command()
def runs(
    workflow: Annotated[str | None, typer.Option(help="Of this workflow only.")] = None,
    status: Annotated[
        str | None, typer.Option(help="open, completed, failed, cancelled, timed_out, dead or blocked.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="At most so many.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on where the last list ended.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """List runs, newest first."""
    page = _api(url).get("/runs", workflow=workflow, status=status, limit=limit, cursor=cursor)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("run", overflow="fold")
    for column in ("workflow", "status", "created", "tags"):
        table.add_column(column)
    for row in page["runs"]:
        colour = STATUS_STYLE.get(row["status"], "")
        cells = (
            row["id"],
            row["workflow"] or "",
            Text(row["status"], colour),
            row["created_at"],
            ", ".join(row["tags"]),
        )
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in cells))
    _print(page, as_json, table if page["runs"] else Text("no runs", "dim"))
    if page.get("cursor") and not as_json:
        out.print(Text(f"more: --cursor {page['cursor']}", "dim"))


@cli.command()
def show(run_id: RunId, as_json: AsJson = False, url: Url = LOCAL) -> None:
    """Show what a run has done, and why it waits."""
    api = _api(url)
    record = api.get(run_path(run_id))
    entries = api.get(run_path(record["id"], "history"))["entries"]  # of a run that continued as new the last
    _print({**record, "history": entries}, as_json, render(record, entries))


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
    message = {"name": name, "body": _json_argument(body), **({"id": id} if id else {})}
    answer = _api(url).post(run_path(run_id, "messages"), message)
    _print(answer, as_json, Text(f"accepted {answer['id']}"))


@cli.command()
def terminate(
    run_id: RunId,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the run.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """End a run at once, as cancelled."""
    answer = _api(url).post(run_path(run_id, "terminate"), {"reason": reason} if reason else {})
    _print(answer, as_json, Text(answer["status"]))


@cli.command()
def resume(run_id: RunId, as_json: AsJson = False, url: Url = LOCAL) -> None:
    """Let a blocked run try again."""
    answer = _api(url).post(run_path(run_id, "resume"), {})
    _print(answer, as_json, Text(answer["status"]))


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


def _api(url: str) -> Api:
    try:
        return Api(url)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url") from None


def _json_argument(text: str | None) -> Any:
    if text is None:
        return None
    text = _text_of(text)
    try:
        return json.loads(text)
    except ValueError as error:
        hint = " Text needs quotes of its own: '\"like this\"'." if text[:1].isalpha() else ""
        raise typer.BadParameter(f"this is not JSON: {error}.{hint}") from None


def _text_of(argument: str) -> str:
    if argument == "-":
        return sys.stdin.read()
    if not argument.startswith("@"):
        return argument
    try:
        return Path(argument[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{argument[1:]} cannot be read: {error}") from None


def _print(answer: Any, as_json: bool, readable: Any) -> None:
    if as_json:
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        out.print(readable)


add_replaying(cli, _api, out, err, LOCAL)
