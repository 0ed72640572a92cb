"""`durable callback`: answers by hand what an outside system was asked."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.text import Text

from durable.cli.terminal import LOCAL, AsJson, Url, api_at, given, json_argument, print_answer

callbacks = typer.Typer(name="callback", help="Answer for an outside system.", no_args_is_help=True)

Token = Annotated[str, typer.Argument(help="What the callback's submission was given.", show_default=False)]


@callbacks.command("complete")
def complete(
    token: Token,
    result: Annotated[str | None, typer.Argument(help="The result: JSON, @file, or - for standard input.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Report a result; the first answer counts."""
    _post(token, "complete", {"result": json_argument(result)}, as_json, url)


@callbacks.command("fail")
def fail(
    token: Token,
    message: Annotated[str, typer.Argument(help="What went wrong.")],
    type: Annotated[str | None, typer.Option(help="The kind of failure, for the run to tell it from others.")] = None,
    data: Annotated[str | None, typer.Option(help="More about it: JSON, @file, or - for standard input.")] = None,
    retryable: Annotated[bool, typer.Option("--retryable", help="It may be asked again.")] = False,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Report a failure; the first answer counts."""
    error = given({"type": type, "message": message, "data": None if data is None else json_argument(data)})
    _post(token, "fail", {"error": error, "retryable": retryable}, as_json, url)


def _post(token: str, action: str, body: dict[str, Any], as_json: bool, url: str) -> None:
    answer = api_at(url).post(f"/callbacks/{quote(token, safe='')}/{action}", body)
    print_answer(answer, as_json, Text("accepted"))
