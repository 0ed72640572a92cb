"""A run for people: what it is, what it has done and how long that took, and why it waits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

STATUS_STYLE: Final[Mapping[str, str]] = {
    "completed": "green",
    "failed": "red",
    "dead": "red",
    "timed_out": "red",
    "cancelled": "yellow",
    "blocked": "bold yellow",
    "running": "cyan",
    "suspended": "blue",
    "pending": "blue",
    "open": "blue",
}
_LONGEST: Final = 72
"""Characters of a step's value that are shown."""
_LONGEST_PAYLOAD: Final = 400
"""The same of input and output; `--json` has all of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the timeline."""

    at: str
    kind: str
    name: str
    took: str
    what: str
    failed: bool = False


def rows(run: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What the run did, in order of record; times count from its creation."""
    began = _time(run["created_at"])
    previous = began
    made: list[Row] = []
    for entry in entries:
        recorded = _time(entry["recorded_at"])
        # A sleep or a wait has no start of its own: it began, as far as we know, when the entry before it was recorded.
        started = _time(entry["started_at"]) if entry.get("started_at") else previous
        made.append(
            Row(
                at=f"+{(started - began).total_seconds():.1f} s",
                kind=entry["kind"],
                name=_name(entry),
                took=duration((recorded - started).total_seconds()),
                what=_outcome(entry),
                failed=bool(entry.get("error")),
            )
        )
        previous = recorded
    return made


def render(run: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The whole page of `durable show`."""
    table = Table(box=None, pad_edge=False, show_header=bool(entries), header_style="dim")
    table.add_column("at", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("operation", overflow="fold")
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("result", overflow="fold")
    for row in rows(run, entries):
        style = "red" if row.failed else ""
        table.add_row(row.at, row.kind, Text(row.name, "bold"), row.took, Text(row.what, style))
    return Group(*_head(run), Text(), table, *_foot(run))


def _head(run: Mapping[str, Any]) -> list[Text]:
    status = run["status"]
    title = Text.assemble(
        (printable(run["id"]), "bold"),
        "  ",
        (status, STATUS_STYLE.get(status, "")),
        f"   {printable(run['workflow'])}, version {printable(run['version'])}",
    )
    times = f"created {run['created_at']}"
    if run.get("finished_at"):
        took = duration((_time(run["finished_at"]) - _time(run["created_at"])).total_seconds())
        times += f", ended {run['finished_at']} ({took})"
    return [title, Text(times, "dim"), *_labelled("input", run.get("input"))]


def _foot(run: Mapping[str, Any]) -> list[Text]:
    foot: list[Text] = []
    if reason := run.get("reason"):
        label = {"suspended": "waits for", "pending": "waits for"}.get(run["status"], run["status"])
        style = STATUS_STYLE.get(run["status"], "")
        foot.append(Text.assemble(Text(), (f"{label}: ", style), printable(reason)))
    if run.get("due_at") and not run.get("finished_at"):
        foot.append(Text(f"looks again at {run['due_at']}", "dim"))
    if error := run.get("error"):
        foot.append(Text.assemble(("error: ", "red"), printable(f"{error['type']}: {error['message']}")))
    foot += _labelled("output", run.get("output"))
    if undelivered := run.get("undelivered"):
        foot.append(Text(f"{undelivered} message(s) came too late to be read", "yellow"))
    return [Text(), *foot] if foot else []


def _labelled(label: str, value: Any) -> list[Text]:
    return [] if value is None else [Text.assemble((f"{label} ", "dim"), shown(value, _LONGEST_PAYLOAD))]


def _name(entry: Mapping[str, Any]) -> str:
    name = printable(entry["location"])
    attempt = entry.get("mark", "").removeprefix("@")
    return f"{name} (attempt {attempt})" if entry.get("mark", "").startswith("@") else name


def _outcome(entry: Mapping[str, Any]) -> str:
    parts: list[str] = []
    if error := entry.get("error"):
        kind = error["type"].rpartition(".")[2]
        parts.append(printable(f"{kind}: {error['message']}" if error.get("message") else kind))
    elif entry.get("value") is not None:
        parts.append(shown(entry["value"]))
    elif messages := entry.get("messages"):
        parts.extend(shown(message["body"]) for message in messages)
    if entry.get("attempts", 0) > 1:
        parts.append(f"({entry['attempts']} attempts)")
    if entry.get("retry_at"):
        pause = (_time(entry["retry_at"]) - _time(entry["recorded_at"])).total_seconds()
        parts.append(f"(again after {duration(pause)})")
    return " ".join(parts)


def shown(value: Any, limit: int = _LONGEST) -> str:
    """A value on one line, cut to a length."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """Text that cannot steer the terminal it is shown on: payloads and names come from anywhere."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def duration(seconds: float) -> str:
    """A length of time, about as precise as anybody wants it."""
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    told = [f"{number}{unit}" for number, unit in parts if number]
    return " ".join(told[:2])


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
