"""What entries stand for outside the run: how each kind is performed, and how what is open is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from durable import codec
from durable.engine.calls import attempt_over, close_attempt, leave_lane, send_attempt
from durable.engine.children import close_child, close_started, start_child
from durable.engine.entities import answer_recorded
from durable.engine.events import subscribe, unsubscribe
from durable.engine.sending import send_recorded
from durable.ops.child import child_start_from, lives_of
from durable.ops.dispatched import ABANDONED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from durable.model.entry import Entry, Kind
    from durable.model.message import StoredMessage
    from durable.model.run import CloseMode, Run
    from durable.ports import Ports


def perform(ports: Ports, run: Run, entry: Entry) -> StoredMessage | None:
    """Performs what an entry records, for the first time or again: twice is harmless.

    Gives a message for the run itself where the effect turns out to have its answer already.
    """
    match entry.kind:
        case "child" | "start":
            return start_child(ports, run, entry)
        case "close":
            for life in lives_of(codec.decode(entry.value, str), run.cuts):
                close_child(ports, life, "graceful")
        case "send" | "entity":
            send_recorded(ports, entry)
        case "loop":
            answer_recorded(ports, run, entry)
        case "call":
            send_attempt(ports, run, entry)
        case "wait":
            return subscribe(ports, run, entry)
        case _:
            raise TypeError(entry.kind)
    return None


def close(ports: Ports, run: Run, opened: Entry, mode: CloseMode) -> None:
    """Ends what an entry has begun outside: nobody waits for it any more. Twice is harmless."""
    match opened.kind:
        case "child" | "start":
            start = child_start_from(opened.value)
            if start.close == "cancel":
                close_started(ports, run, start, mode)
        case "call":
            close_attempt(ports, run, opened, "the run does not wait for it any more")
        case "wait":
            unsubscribe(ports, run, opened)
        case "entity":
            pass  # it performs what it was asked for, whoever waits
        case _:
            raise TypeError(opened.kind)


def completed(ports: Ports, run: Run, opened: Entry) -> None:
    """What is left to do once an open operation has its result. Twice is harmless."""
    match opened.kind:
        case "wait":
            unsubscribe(ports, run, opened)
        case "call":
            leave_lane(ports, run, opened)  # also for a turn that is fenced: the attempt has ended
        case _:
            pass


TIDIED: Final[frozenset[Kind]] = frozenset({"wait"})
"""Kinds for which `completed` has something to do: what it does must not be in vain."""


def ends_an_effect(entry: Entry) -> bool:
    """Whether it records that something is closed outside: whoever wrote it may have died before it did that."""
    failed_call = entry.kind == "call" and entry.error is not None and not entry.mark
    return entry.error == ABANDONED or failed_call or attempt_over(entry) is not None


def still_open(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries that have begun something outside which has not ended, as far as the run knows."""
    entries = list(entries)
    ended = {entry.location for entry in entries if not entry.mark}
    heard = {message.name for entry in entries for message in entry.messages if message.kind == "child"}
    latest: dict[str, Entry] = {}
    for entry in entries:
        if entry.mark.startswith("?") and entry.location not in ended and entry.kind != "entity":
            latest[entry.location] = entry
        elif attempt_over(entry) is not None:
            latest.pop(entry.location, None)
        elif entry.kind == "start" and entry.error is None and entry.location not in heard:
            latest[entry.location] = entry
    return iter(latest.values())
