"""`durable watch` follows a run until it ends, `durable stream` what it streams: both by asking now and then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.text import Text

from durable.adapters.clock import SystemClock
from durable.cli.api import Api, Refusal, Unreachable, history_of, run_path
from durable.cli.terminal import LOCAL, NOT_YET, RunId, Url, api_at, err, out
from durable.cli.timeline import STATUS_STYLE, Row, foot, lines, printable
from durable.model.chunk import before
from durable.ports import Clock

FIRST_PAUSE: Final = 0.2
LATER_PAUSES: Final = 1.6
LONGEST_PAUSE: Final = 3.0
"""Asks after 0.2 s when there was news, then ever more rarely, at last every 3 s."""
TROUBLES: Final = 5
"""So many failures in a row are borne: a deployment or a throttled table is no reason to stop watching."""
OVERLAP: Final = 2.0
"""Chunks of two threads may be stored in another order than their times say; a reader looks back so many seconds."""
CHUNKS: Final = 500


class NotYet(Exception):
    """The time that the caller gave is over, and the run goes on."""

    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(f'run "{run_id}" goes on: it is {status}')


@dataclass(frozen=True, slots=True)
class Recorded:
    """The run has recorded something."""

    entry: Mapping[str, Any]
    row: Row


@dataclass(frozen=True, slots=True)
class Changed:
    """The run has another status, or waits for something else."""

    run: Mapping[str, Any]


News: TypeAlias = Recorded | Changed


class Watch:
    """Follows one run."""

    def __init__(self, api: Api, run_id: str, clock: Clock, timeout: float | None = None) -> None:
        self._api = api
        self._id = run_id
        self._clock = clock
        self._end = None if timeout is None else clock.monotonic() + timeout
        self._pause = FIRST_PAUSE
        self._troubles = TROUBLES  # the first answer must come
        self._seen: set[tuple[str, str, str]] = set()
        self._last: tuple[Any, ...] = ()
        self._read_at: str | None = None

    def follow(self) -> Iterator[News]:
        """What happens, as it is noticed, until the run has ended or is blocked; raises NotYet when the time is over."""
        while True:
            run, news = self._look()
            yield from news
            if run is None:
                status = "not to be reached just now"
            elif run["finished_at"] is not None or run["status"] == "blocked":
                return
            else:
                status = run["status"]
            self._pause = FIRST_PAUSE if news else min(LONGEST_PAUSE, self._pause * LATER_PAUSES)
            left = self._pause if self._end is None else self._end - self._clock.monotonic()
            if left <= 0:
                raise NotYet(self._id, status)
            self._clock.sleep(min(self._pause, left))

    def _look(self) -> tuple[Mapping[str, Any] | None, list[News]]:
        try:
            run = self._api.get(run_path(self._id))
            news: list[News] = [*self._new_entries(run)]
        except (Refusal, Unreachable) as trouble:
            if self._troubles >= TROUBLES or (isinstance(trouble, Refusal) and trouble.status < 500):
                raise
            self._troubles += 1
            return None, []
        self._troubles = 0
        now = (run["id"], run["status"], run["reason"])
        if now != self._last:
            self._last = now
            news.append(Changed(run))
        return run, news

    def _new_entries(self, run: Mapping[str, Any]) -> Iterator[News]:
        """Read after the record, so that one that tells the end goes with the whole history."""
        if run["status"] not in {"running", "rolling_back"} and run["updated_at"] == self._read_at:
            return
        entries = history_of(self._api, run["id"])["entries"]
        self._read_at = run["updated_at"]
        for entry, row in zip(entries, lines(run, entries), strict=True):
            key = (run["id"], entry["location"] + entry["mark"], entry["recorded_at"])
            if key not in self._seen:
                self._seen.add(key)
                yield Recorded(entry, row)


def add_watching(cli: typer.Typer) -> None:
    """Adds the commands."""
    cli.command()(watch)
    cli.command()(stream)


def watch(
    run_id: RunId,
    timeout: Annotated[float | None, typer.Option(min=0, help="Stop after so many seconds, with exit code 3.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
    url: Url = LOCAL,
) -> None:
    """Follow a run until it ends. Exit code 0: it has completed; 1: it ended otherwise or is blocked; 3: not yet."""
    last: Mapping[str, Any] = {}
    try:
        for news in Watch(api_at(url), run_id, SystemClock(), timeout).follow():
            if isinstance(news, Changed):
                last = news.run
            _print(news, as_json)
    except NotYet as not_yet:
        err.print(Text(printable(str(not_yet)), "yellow"))
        raise typer.Exit(NOT_YET) from None
    if not as_json:
        for line in foot(last, reason=False):
            out.print(line)
    raise typer.Exit(0 if last.get("status") == "completed" else 1)


def _print(news: News, as_json: bool) -> None:
    match news:
        case Recorded(entry, row):
            if as_json:
                print(json.dumps({"entry": entry}, ensure_ascii=False))
                return
            text = f"{row.at:>10}  {row.kind:10} {row.name}  {row.took}  {row.what}".rstrip()
            out.print(Text(text, "red" if row.failed else ""), soft_wrap=True)
        case Changed(run):
            if as_json:
                print(json.dumps({"run": run}, ensure_ascii=False))
                return
            status = (run["status"], STATUS_STYLE.get(run["status"], ""))
            reason = f": {printable(run['reason'])}" if run.get("reason") else ""
            out.print(Text.assemble((printable(run["id"]), "bold"), " ", status, reason), soft_wrap=True)


def stream(
    run_id: RunId,
    name: Annotated[str, typer.Argument(help="The stream's name.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each chunk with its id and source.")] = False,
    url: Url = LOCAL,
) -> None:
    """Print what a run streams: a JSON value a line, in the order in which it was appended."""
    for chunk in chunks(api_at(url), run_id, name, SystemClock(), follow=follow):
        if as_json:
            print(json.dumps(chunk, ensure_ascii=False))
        else:
            print(printable(json.dumps(chunk["value"], ensure_ascii=False)))


def chunks(api: Api, run_id: str, name: str, clock: Clock, *, follow: bool) -> Iterator[Mapping[str, Any]]:
    """The chunks that there are, each once; with `follow` also those to come, until the run has ended."""
    seen: set[tuple[str, str, int]] = set()
    last: str | None = None
    after: str | None = None
    pause = FIRST_PAUSE
    while True:
        page = api.get(run_path(run_id, "streams"), name=name, after=after, limit=CHUNKS)
        new: list[Mapping[str, Any]] = []
        for chunk in page["chunks"]:
            which = (chunk["source"], chunk["execution"], chunk["number"])  # one that is stored twice has two ids
            if which not in seen:
                seen.add(which)
                new.append(chunk)
        yield from new
        last = max((last or "", *(chunk["id"] for chunk in new))) or None
        if len(page["chunks"]) == CHUNKS:
            after = page["cursor"]
            continue
        if page["ended"] or not follow:
            return
        after = None if last is None else before(last, OVERLAP)
        pause = FIRST_PAUSE if new else min(LONGEST_PAUSE, pause * LATER_PAUSES)
        clock.sleep(pause)
