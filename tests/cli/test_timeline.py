"""The timeline of a run, from what the API says."""

import io
from typing import Any

import pytest
from rich.console import Console

from durable.cli.timeline import duration, printable, render, rows, shown


def at(seconds: float) -> str:
    return f"2026-11-30T10:{int(seconds) // 60:02}:{seconds % 60:06.3f}Z"


RUN: dict[str, Any] = {
    "id": "r-1",
    "workflow": "fulfil",
    "version": "1",
    "status": "suspended",
    "reason": 'signal "approve"',
    "due_at": at(600),
    "created_at": at(0),
    "finished_at": None,
    "input": {"sku": "cup"},
    "output": None,
    "error": None,
}


def entry(location: str, kind: str, recorded: float, **more: Any) -> dict[str, Any]:
    return {"location": location, "mark": "", "kind": kind, "recorded_at": at(recorded), "value": None, **more}


def text(run: dict[str, Any], entries: list[dict[str, Any]], width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render(run, entries))
    return console.export_text()


def test_a_step_took_from_its_start_to_its_record():
    [row] = rows(RUN, [entry("charge", "step", 2.5, started_at=at(1), value={"id": 7}, attempts=2)])
    assert (row.at, row.kind, row.name, row.took) == ("+1.0 s", "step", "charge", "1.5 s")
    assert row.what == '{"id": 7} (2 attempts)'


def test_a_wait_took_from_the_record_before_it():
    message = {"id": "m", "name": "approve", "body": True}
    found = rows(RUN, [entry("charge", "step", 1, started_at=at(0)), entry("approve", "wait", 90, messages=[message])])
    assert (found[1].at, found[1].took, found[1].what) == ("+1.0 s", "1m 29s", "true")


def test_a_failed_attempt_tells_its_error_and_when_it_is_tried_again():
    error = {"type": "shop.Declined", "message": "no funds"}
    [row] = rows(RUN, [entry("charge", "step", 1, mark="@1", started_at=at(0), error=error, retry_at=at(5))])
    assert row.name == "charge (attempt 1)"
    assert row.failed
    assert row.what == "Declined: no funds (again after 4.0 s)"


def test_a_run_that_waits_says_for_what_and_one_that_is_blocked_says_why():
    assert 'waits for: signal "approve"' in text(RUN, [])
    assert "blocked: the code changed" in text({**RUN, "status": "blocked", "reason": "the code changed"}, [])


def test_the_reason_of_a_blocked_run_is_told_once_and_whole():
    reason = "the code changed, " + "very " * 80 + "much"
    error = {"type": "durable.errors.Diverged", "message": reason[:299] + "…"}
    told = " ".join(text({**RUN, "status": "blocked", "reason": reason, "error": error}, []).split())
    assert told.count("the code changed") == 1
    assert reason in told


def test_unread_messages_are_counted_and_named():
    unread = [{"name": "aprove"}, {"name": "aprove"}, {"name": "note"}]
    assert "3 message(s) that nothing has asked for yet: aprove, note" in text({**RUN, "unread": unread}, [])


def test_an_ended_run_tells_its_output_or_error_and_how_long_it_took():
    ended = {**RUN, "status": "completed", "reason": None, "finished_at": at(61), "output": [1]}
    assert "(1m 1s)" in text(ended, [])
    assert "output [1]" in text(ended, [])
    failed = {**RUN, "status": "failed", "reason": None, "error": {"type": "ValueError", "message": "no"}}
    assert "error: ValueError: no" in text(failed, [])


def test_payloads_cannot_steer_the_terminal_or_use_our_markup():
    hostile = {**RUN, "id": "r\x1b[2J", "input": {"a": "\x1b]0;x\x07 [red]x[/red] \x9b"}}
    page = text(hostile, [entry("%5Bbold%5Dx%5B%2Fbold%5D", "step", 1, value="\x1b[31m")])
    assert not any(character in page for character in "\x1b\x07\x9b")
    assert "[red]x[/red]" in page
    assert "[bold]x[/bold]" in page


def test_a_long_value_is_cut():
    assert len(shown("x" * 10_000)) == 72
    assert shown("x" * 10_000).endswith("…")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "0 ms"),
        (0.0123, "12 ms"),
        (0.9999, "1.0 s"),
        (59.94, "59.9 s"),
        (60, "1m"),
        (3661, "1h 1m"),
        (90_000, "1d 1h"),
        (86_400 * 400, "400d"),
    ],
)
def test_a_duration_is_as_precise_as_anybody_wants_it(seconds: float, told: str):
    assert duration(seconds) == told


def test_ordinary_text_of_any_language_stays_as_it_is():
    assert printable("grüße 漢字") == "grüße 漢字"
