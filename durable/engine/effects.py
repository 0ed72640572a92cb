"""What entries stand for outside the run: how each kind is performed, and how what is open is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable import codec
from durable.engine.children import close_child, start_child
from durable.engine.sending import send_recorded
from durable.ops.child import child_start_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from durable.model.entry import Entry
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
            close_child(ports, codec.decode(entry.value, str), "graceful")
        case "send":
            send_recorded(ports, entry)
        case _:
            raise TypeError(entry.kind)
    return None


def close(ports: Ports, run: Run, opened: Entry, mode: CloseMode) -> None:
    """Ends what an entry has begun outside: nobody waits for it any more. Twice is harmless."""
    match opened.kind:
        case "child" | "start":
            start = child_start_from(opened.value)
            if start.close == "cancel":
                close_child(ports, start.id, mode)
        case _:
            raise TypeError(opened.kind)


def completed(ports: Ports, run: Run, opened: Entry) -> None:
    """What is left to do once an open operation has its result. Twice is harmless."""


def still_open(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries that have begun something outside which has not ended, as far as the run knows."""
    entries = list(entries)
    ended = {entry.location for entry in entries if not entry.mark}
    heard = {message.name for entry in entries for message in entry.messages if message.kind == "child"}
    latest: dict[str, Entry] = {}
    for entry in entries:
        if entry.mark.startswith("?") and entry.location not in ended:
            latest[entry.location] = entry
        elif entry.kind == "start" and entry.error is None and entry.location not in heard:
            latest[entry.location] = entry
    return iter(latest.values())


