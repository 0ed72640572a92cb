"""A run for people: what it is, what it has done and how long that took, and why it waits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from durable.cli.tree import AT_ONCE, Node, Timed, grown, readable

STATUS_STYLE: Final[Mapping[str, str]] = {
    "completed": "green",
    "failed": "red",
    "dead": "red",
    "timed_out": "red",
    "cancelled": "yellow",
    "blocked": "bold yellow",
    "rolling_back": "magenta",
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
    depth: int = 0
    """In how many scopes it stands."""


def rows(run: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What the run did, as a tree in the order of first record; times count from its creation."""
    began = _time(run["created_at"])
    root, _ = grown(entries, began)
    return [row for node in root.children.values() for row in _rows_of(node, began, 0)]


def lines(run: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> list[Row]:
    """A row for each entry, in order of record, each with its whole location."""
    began = _time(run["created_at"])
    _, history = grown(entries, began)
    return [_row(timed, began, name=readable(timed.entry["location"])) for timed in history]


def _rows_of(node: Node, began: datetime, depth: int) -> Iterator[Row]:
    """A node that has recorded nothing itself is a line that sums up what is in it."""
    own = [each for each in node.entries if not each.entry.get("mark", "").startswith("~")]
    progress = [each for each in node.entries if each.entry.get("mark", "").startswith("~")]
    inside = list(node.all_entries())
    first = min(each.started for each in inside)
    if not own:
        last = max(each.recorded for each in inside)
        name = printable(readable(node.name))
        yield Row(_at(first, began), "", name, duration((last - first).total_seconds()), "", depth=depth)
    for each in own:
        yield _row(each, began, depth, first if node.children else None)
    for each in progress:
        yield _row(each, began, depth + 1)
    for child in node.children.values():
        yield from _rows_of(child, began, depth + 1)


def _row(
    timed: Timed, began: datetime, depth: int = 0, started: datetime | None = None, *, name: str | None = None
) -> Row:
    entry = timed.entry
    started = started or timed.started
    took = "" if entry["kind"] in AT_ONCE else duration((timed.recorded - started).total_seconds())
    return Row(
        at=_at(started, began),
        kind=_kind(entry),
        name=printable(name or _name(timed)) + _attempt(entry),
        took=took,
        what=_outcome(entry),
        failed=bool(entry.get("error")),
        depth=depth,
    )


def _at(moment: datetime, began: datetime) -> str:
    return f"+{(moment - began).total_seconds():.1f} s"


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
        name = Text.assemble("  " * row.depth, (row.name, "bold" if row.kind else ""))
        table.add_row(row.at, row.kind, name, row.took, Text(row.what, style))
    return Group(*_head(run), Text(), table, *foot(run))


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
    facts = ["tags " + ", ".join(printable(tag) for tag in run["tags"])] if run.get("tags") else []
    attributes: Mapping[str, Any] = run.get("attributes") or {}
    facts += [f"{printable(name)}={shown(value)}" for name, value in attributes.items()]
    if run.get("lineage"):
        facts.append(f"continues {printable(run['lineage'])}")
    told = [Text(", ".join(facts), "dim")] if facts else []
    return [title, Text(times, "dim"), *told, *_labelled("input", run.get("input"))]


def foot(run: Mapping[str, Any], *, reason: bool = True) -> list[Text]:
    """How things stand: what the run waits for and until when, what was asked of it, how it ended."""
    found: list[Text] = []
    ended = bool(run.get("finished_at"))
    told = bool(run.get("reason")) and run["status"] == "blocked" and _tells(run["reason"], run.get("error"))
    if reason and run.get("reason") and run["reason"] != _short(run.get("error")):
        label = {"suspended": "waits for", "pending": "waits for", "rolling_back": "rolling back"}
        style = STATUS_STYLE.get(run["status"], "")
        found.append(Text.assemble((f"{label.get(run['status'], run['status'])}: ", style), printable(run["reason"])))
    if not ended:
        found += _to_come(run)
    if (error := run.get("error")) and not told:
        found.append(Text.assemble(("error: ", "red"), printable(f"{error['type']}: {error['message']}")))
    found += _labelled("output", run.get("output"))
    if unread := run.get("unread"):
        names = ", ".join(dict.fromkeys(printable(message["name"]) for message in unread))
        found.append(Text(f"{len(unread)} message(s) that nothing has asked for yet: {names}", "yellow"))
    found += [_call(call) for call in run.get("calls") or ()]
    if late := run.get("late_results"):
        found.append(Text(f"{late} result(s) of remote attempts that had been given up: they change nothing", "yellow"))
    if undelivered := run.get("undelivered"):
        found.append(Text(f"{undelivered} message(s) came too late to be read", "yellow"))
    return [Text(), *found] if found else []


_STATES: Final[Mapping[str, str]] = {
    "limited": "waits for its turn on queue {queue} since {since}",
    "queued": "waits for a worker of queue {queue} since {since}",
    "running": "is performed by {worker} since {picked_up_at}, last heard of at {heartbeat_at}",
    "pausing": "failed at {since}, begins again at {retry_at}",
}


def _call(call: Mapping[str, Any]) -> Text:
    told = _STATES[call["state"]].format_map({key: printable(str(value)) for key, value in call.items()})
    name = printable(readable(call["location"]))
    progress = "" if call.get("progress") is None else f": {shown(call['progress'])}"
    return Text(f"{name} (attempt {call['attempt']}) {told}{progress}", "dim")


def _to_come(run: Mapping[str, Any]) -> list[Text]:
    told = {
        "is asked to end": run.get("cancel_requested"),
        "will then be": run.get("ending"),
        "looks again at": run.get("due_at"),
        "times out at": run.get("deadline"),
    }
    return [Text(f"{label} {value}", "dim") for label, value in told.items() if value]


def _labelled(label: str, value: Any) -> list[Text]:
    return [] if value is None else [Text.assemble((f"{label} ", "dim"), shown(value, _LONGEST_PAYLOAD))]


def _name(timed: Timed) -> str:
    name = readable(timed.path[-1].removeprefix("!"))
    return name.removeprefix("version:") if timed.entry["kind"] == "version" else name


def _kind(entry: Mapping[str, Any]) -> str:
    """The kind, in the words of those who wrote the workflow."""
    mark, kind = entry.get("mark", ""), entry["kind"]
    if mark.startswith("!"):
        return "undo"
    if kind == "update":
        return "answer"
    messages = entry.get("messages") or ()
    if kind == "wait" and messages:
        return {"update": "update", "continue": "breakpoint"}.get(messages[0].get("kind"), "wait")
    return kind


def _attempt(entry: Mapping[str, Any]) -> str:
    mark = entry.get("mark", "")
    name, at, attempt = mark.partition("@")
    if at and name in {"", "!"}:
        return f" (attempt {attempt})"
    return f" (before [{mark[1:]}])" if mark.startswith("~") else ""


def _said(entry: Mapping[str, Any], message: Mapping[str, Any]) -> Any:
    body = message["body"]
    if entry["kind"] != "callback" or not isinstance(body, dict):
        return body
    return cast("dict[str, Any]", body).get("value")


def _outcome(entry: Mapping[str, Any]) -> str:
    parts: list[str] = []
    if error := entry.get("error"):
        parts.append(printable(_short(error)))
    elif told := _told(entry):
        parts.append(told)
    elif entry.get("value") is not None:
        parts.append(shown(entry["value"]))
    elif messages := entry.get("messages"):
        parts.extend(shown(_said(entry, message)) for message in messages)
    if entry.get("attempts", 0) > 1:
        parts.append(f"({entry['attempts']} attempts)")
    if entry.get("retry_at"):
        pause = (_time(entry["retry_at"]) - _time(entry["recorded_at"])).total_seconds()
        parts.append(f"(again after {duration(pause)})")
    return " ".join(parts)


def _short(error: Mapping[str, Any] | None) -> str:
    """An error by the bare name of its class, as the reason of a run that failed has it."""
    if error is None:
        return ""
    kind: str = error["type"].rpartition(".")[2]
    return f"{kind}: {error['message']}" if error.get("message") else kind


def _tells(reason: str, error: Mapping[str, Any] | None) -> bool:
    """Whether the reason says all that the error does: of a blocked run the error is the beginning of it."""
    return error is not None and reason.startswith(error["message"].removesuffix("…"))


def _told(entry: Mapping[str, Any]) -> str:
    """The outcome of what has a form of its own; empty for other entries, whose value is the outcome."""
    match entry:
        case {"mark": "!"}:
            return "undone"
        case {"kind": "cancel", "value": [*keys]}:
            return "ends " + printable(", ".join(readable(str(key)) for key in keys))
        case {"kind": "review", "value": {"decision": decision, "reviewer": reviewer, "comment": comment}}:
            return printable(f"{decision} by {reviewer}" + (f": {comment}" if comment else ""))
        case {"kind": "update", "value": {"rejected": reason, "value": value}}:
            return shown(value) if reason is None else printable(f"rejected: {reason}")
        case {"kind": "wait", "messages": [{"kind": "continue"}, *_]}:
            return "continued"
        case _:
            return ""


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
