"""Effects that a lost turn has recorded and perhaps not performed: repeated before anything else, whatever becomes of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from durable.engine import effects
from durable.engine.replying import reply_recorded
from durable.ops.dispatched import ABANDONED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.entry import Entry, Kind
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ports import Ports


EFFECTS: Final[frozenset[Kind]] = frozenset({"send", "start", "close"})
"""Kinds whose results stand for an effect."""


def repeat_effects(ports: Ports, run: Run, entries: Sequence[Entry]) -> list[StoredMessage]:
    """Everything since the last clean epoch; gives what the run has sent to itself.

    It needs no replay: the run may be blocked, dead or cancelled next. A settle moves the clean epoch, so no turn may
    settle without this. Every effect is harmless twice.
    """
    recent = [entry for entry in entries if entry.epoch > run.clean_epoch]
    if not recent:
        return []
    results = {entry.location: entry for entry in entries if not entry.mark}
    opened = {entry.location: entry for entry in entries if entry.mark.startswith("?")}
    sent: list[StoredMessage | None] = []
    for entry in recent:
        if entry.kind == "update" and not entry.mark:
            reply_recorded(ports, run, entry)
        elif entry.kind in EFFECTS and not entry.mark:
            sent.append(effects.perform(ports, run, entry))
        elif entry.mark.startswith("?") and entry.location not in results and entry is opened[entry.location]:
            sent.append(effects.perform(ports, run, entry))
        elif not entry.mark and entry.location in opened:
            _finish(ports, run, opened[entry.location], entry)
    answers = [message for message in sent if message is not None]
    for message in answers:
        ports.store.put_message(run.id, message)
    return answers


def _finish(ports: Ports, run: Run, opened: Entry, result: Entry) -> None:
    if result.error == ABANDONED:
        effects.close(ports, run, opened, run.cancel_requested or "graceful")
    else:
        effects.completed(ports, run, opened)
