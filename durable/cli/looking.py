"""Commands that look: at the list of runs, at one run, at what it shows."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from durable.cli.api import history_of, run_path
from durable.cli.terminal import LOCAL, AsJson, RunId, Url, api_at, print_answer, print_cursor, print_value, table_of
from durable.cli.timeline import STATUS_STYLE, render


def add_looking(cli: typer.Typer) -> None:
    """Adds the commands."""
    for command in (runs, show, state):
        cli.command()(command)


def runs(
    workflow: Annotated[str | None, typer.Option(help="Of this workflow only.")] = None,
    status: Annotated[
        str | None,
        typer.Option(
            help="open, pending, suspended, rolling_back, blocked, completed, failed, cancelled, timed_out or dead."
        ),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="With this tag only.")] = None,
    where: Annotated[
        str | None, typer.Option(help="With such attributes only: \"amount >= 100 and region == 'eu'\".")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Print how many there are, not which.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100, help="At most so many.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on where the last list ended.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """List runs, newest first."""
    api = api_at(url)
    filters = {"workflow": workflow, "status": status, "tag": tag, "where": where}
    if count:
        counted = api.get("/count", **filters)
        print_answer(counted, as_json, Text(str(counted["count"])))
        return
    page = api.get("/runs", **filters, limit=limit, cursor=cursor)
    rows = [
        (
            row["id"],
            row["workflow"] or "",
            Text(row["status"], STATUS_STYLE.get(row["status"], "")),
            row["created_at"],
            ", ".join(row["tags"]),
            ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in row["attributes"].items()),
        )
        for row in page["runs"]
    ]
    columns = ("run", "workflow", "status", "created", "tags", "attributes")
    print_answer(page, as_json, table_of(columns, rows) if rows else Text("no runs", "dim"))
    print_cursor(page, as_json)


def show(run_id: RunId, as_json: AsJson = False, url: Url = LOCAL) -> None:
    """Show what a run has done, and why it waits."""
    api = api_at(url)
    record = api.get(run_path(run_id))
    history = history_of(api, record["id"])  # of a run that continued as new the last
    entries: list[dict[str, Any]] = history["entries"]
    shown: dict[str, Any] = {**record, "history": entries}
    if record["finished_at"] is None:
        shown["unread"] = history["unread"]
        shown["calls"] = history["calls"]
    print_answer(shown, as_json, render(shown, entries))


def state(
    run_id: RunId,
    key: Annotated[str | None, typer.Argument(help="Under which it is published; all of them if not given.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Print what a run has published, as JSON."""
    answer = api_at(url).get(run_path(run_id, "state"), key=key)
    value = answer["state"] if key is None else answer["value"]
    print_value(answer if as_json else value, as_json)
