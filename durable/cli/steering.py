"""Commands that change what a run does: end it, mend it, let it go on, ask it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from durable.adapters.clock import SystemClock
from durable.cli.api import Api, run_path
from durable.cli.terminal import (
    LOCAL,
    NOT_YET,
    AsJson,
    RunId,
    Url,
    api_at,
    err,
    given,
    json_argument,
    print_answer,
    print_value,
)
from durable.cli.timeline import printable
from durable.ports import Clock

LONGEST_WAIT: Final = 25
"""Seconds that the API waits within one request."""


class Mode(StrEnum):
    """How a run is cancelled."""

    GRACEFUL = "graceful"
    COMPENSATE = "compensate"
    TERMINATE = "terminate"


def add_steering(cli: typer.Typer) -> None:
    """Adds the commands."""
    for command in (cancel, terminate, retry, resume, delete, update):
        cli.command()(command)
    cli.command("continue")(go_on)


def cancel(
    run_id: RunId,
    mode: Annotated[
        Mode, typer.Option(help="Let it clean up, undo what it has done, or end it at once without either.")
    ] = Mode.GRACEFUL,
    reason: Annotated[str | None, typer.Option(help="Why; kept with a run that is terminated.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Ask a run to end, as cancelled."""
    answer = api_at(url).post(run_path(run_id, "cancel"), given({"mode": mode, "reason": reason}))
    asked = Text(f"asked to end ({mode}); follow it with: durable watch {answer['id']}")
    if answer["status"] == "blocked":
        asked = Text(
            "asked to end, but it is blocked and cannot clean up: use --mode compensate or --mode terminate", "yellow"
        )
    print_answer(answer, as_json, asked if answer["finished_at"] is None else Text(answer["status"]))


def terminate(
    run_id: RunId,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the run.")] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """End a run at once, as cancelled."""
    answer = api_at(url).post(run_path(run_id, "terminate"), given({"reason": reason}))
    print_answer(answer, as_json, Text(answer["status"]))


def retry(run_id: RunId, as_json: AsJson = False, url: Url = LOCAL) -> None:
    """Let a run that failed or died go on from the operation that failed."""
    answer = api_at(url).post(run_path(run_id, "retry"))
    print_answer(answer, as_json, Text(answer["status"]))


def resume(run_id: RunId, as_json: AsJson = False, url: Url = LOCAL) -> None:
    """Let a blocked run try again."""
    answer = api_at(url).post(run_path(run_id, "resume"))
    print_answer(answer, as_json, Text(answer["status"]))


def delete(run_id: RunId, as_json: AsJson = False, url: Url = LOCAL) -> None:
    """Forget a run that has ended, with everything that it and its children have stored."""
    api_at(url).delete(run_path(run_id))
    print_answer({"id": run_id, "deleted": True}, as_json, Text("deleted"))


def go_on(
    run_id: RunId,
    label: Annotated[str, typer.Argument(help="The breakpoint's label.")],
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Let a run pass the breakpoint at which it stands."""
    answer = api_at(url).post(run_path(run_id, "continue"), {"label": label})
    print_answer(answer, as_json, Text(f"passes {printable(label)}"))


def update(
    run_id: RunId,
    name: Annotated[str, typer.Argument(help="The update's name.")],
    arg: Annotated[str | None, typer.Argument(help="Its argument: JSON, @file, or - for standard input.")] = None,
    wait: Annotated[int, typer.Option(min=0, max=3600, help="Seconds to wait for the answer.")] = 10,
    id: Annotated[
        str | None, typer.Option(help="The update's id: the same id is taken once and has one answer.")
    ] = None,
    as_json: AsJson = False,
    url: Url = LOCAL,
) -> None:
    """Ask a run for an answer and print it. Exit code 3: accepted, and no answer yet."""
    api = api_at(url)
    answer = ask(api, run_id, given({"name": name, "id": id}) | {"arg": json_argument(arg)}, wait, SystemClock())
    if "response" in answer:
        print_value(answer if as_json else answer["response"], as_json)
        return
    print_answer(answer, as_json, Text(f"accepted {answer['id']}"))
    err.print(Text("There is no answer yet: ask again with the same --id.", "yellow"))
    raise typer.Exit(NOT_YET)


def ask(api: Api, run_id: str, request: dict[str, Any], wait: float, clock: Clock) -> dict[str, Any]:
    """The API's answer, with `response` if it came within `wait` seconds; a longer wait takes several requests."""
    end = clock.monotonic() + wait
    path = run_path(run_id, "updates")
    answer: dict[str, Any] = api.post(f"{path}?wait={min(LONGEST_WAIT, round(wait))}", request)
    while "response" not in answer and (left := round(end - clock.monotonic())) > 0:
        answer = api.get(path, name=request["name"], id=answer["id"], wait=min(LONGEST_WAIT, left))
    return answer
