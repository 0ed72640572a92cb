"""`durable reviews`: what people are asked to decide, and their decisions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from durable.cli.api import run_path
from durable.cli.terminal import LOCAL, AsJson, RunId, Url, api_at, print_answer, print_cursor, table_of
from durable.cli.timeline import shown

reviews = typer.Typer(name="reviews", help="What people are asked to decide.", no_args_is_help=True)


class Decision(StrEnum):
    """What a reviewer says."""

    APPROVED = "approved"
    REJECTED = "rejected"


@reviews.command("list")
def list_reviews(
    run: Annotated[str | None, typer.Option(help="Of this run only.")] = None,
    workflow: Annotated[str | None, typer.Option(help="Of this workflow only.")] = None,
    reviewer: Annotated[str | None, typer.Option(help="That this person may decide only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Of at most so many runs.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where the last list ended.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """List open reviews."""
    if run is not None and not (workflow is None and reviewer is None and cursor is None):
        raise typer.BadParameter("it stands alone: the reviews of one run are not filtered", param_hint="--run")
    api = api_at(url)
    if run is not None:
        page = api.get(run_path(run, "reviews"))
    else:
        page = api.get("/reviews", workflow=workflow, reviewer=reviewer, limit=limit, cursor=cursor)
    rows = [
        (
            review["run_id"],
            review["location"],
            ", ".join(review["reviewers"]),
            review["opened_at"],
            review["deadline"] or "",
            shown(review["artifact"], 40),
        )
        for review in page["reviews"]
    ]
    columns = ("run", "review", "reviewers", "opened", "until", "about")
    print_answer(page, as_json, table_of(columns, rows) if rows else Text("no reviews", "dim"))
    print_cursor(page, as_json)


@reviews.command("decide")
def decide(
    run_id: RunId,
    review: Annotated[str, typer.Argument(help="The review's name, or its location.")],
    decision: Annotated[Decision, typer.Argument(help="approved or rejected.")],
    reviewer: Annotated[str, typer.Option(help="Who decides.")],
    comment: Annotated[str, typer.Option(help="For the run to read.")] = "",
    section: Annotated[list[str] | None, typer.Option(help="TITLE=TEXT; may be repeated.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Decide a review; the first decision counts."""
    body = {
        "review": review,
        "decision": decision,
        "reviewer": reviewer,
        "comment": comment,
        "sections": [_section(text) for text in section or []],
    }
    answer = api_at(url).post(run_path(run_id, "reviews"), body)
    print_answer(answer, as_json, Text(decision))


def _section(text: str) -> dict[str, str]:
    title, separator, rest = text.partition("=")
    if not (separator and title):
        raise typer.BadParameter(f"{text!r} is no section; write it as TITLE=TEXT", param_hint="--section")
    return {"title": title, "text": rest}
