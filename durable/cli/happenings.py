"""The command that publishes events."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from durable.cli.terminal import LOCAL, AsJson, Url, api_at, given, json_argument, print_answer


def add_publishing(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command()(publish)


def publish(
    name: Annotated[str, typer.Argument(help="The event's name.")],
    payload: Annotated[str | None, typer.Argument(help="Its payload: JSON, @file, or - for standard input.")] = None,
    id: Annotated[str | None, typer.Option(help="The event's id: the same id is one event.")] = None,
    buffer: Annotated[
        str | None, typer.Option(help='How long it is kept for runs that come to wait later, if none waits now: "1h".')
    ] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Publish an event to every run that waits for it, and to the workflows that it starts."""
    body = given({"name": name, "id": id, "buffer": buffer}) | {"payload": json_argument(payload)}
    answer = api_at(url).post("/events", body)
    print_answer(answer, as_json, Text(f"accepted {answer['id']}"))
