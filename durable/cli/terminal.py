"""What commands have in common: the options of all, how JSON is taken, and how answers are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from durable.cli.api import Api
from durable.cli.timeline import printable

out: Final = Console(highlight=False, soft_wrap=False)
err: Final = Console(stderr=True, highlight=False)

Url = Annotated[
    str, typer.Option("--url", envvar="DURABLE_URL", help="Address of the deployment's API.", show_default=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]
LOCAL: Final = "http://127.0.0.1:8321"

NOT_YET: Final = 3
"""The exit code of a command that has waited as long as it was told to, for something that is still to come."""


def api_at(url: str) -> Api:
    """The API; a wrong address is a wrong call."""
    try:
        return Api(url)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url") from None


def json_argument(text: str | None) -> Any:
    """The value of an argument that is JSON, `@file` or `-`; None for none."""
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


def given(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def print_answer(answer: Any, as_json: bool, readable: Any) -> None:
    """Prints what the API answered, or a text for people."""
    if as_json:
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        out.print(readable)


def print_value(value: Any, as_json: bool) -> None:
    """Prints a value of the user's, which is JSON either way; without --json what could steer a terminal is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(text if as_json else "\n".join(printable(line) for line in text.splitlines()))


def table_of(columns: Iterable[str], rows: Iterable[Iterable[str | Text]]) -> Table:
    """A table without lines; the first column is never cut short."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold" if number == 0 else "ellipsis")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return table


def print_cursor(page: Mapping[str, Any], as_json: bool) -> None:
    """Says how a list goes on."""
    if page.get("cursor") and not as_json:
        out.print(Text(f"more: --cursor {page['cursor']}", "dim"), soft_wrap=True)
