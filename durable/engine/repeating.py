"""Effects that a lost turn has recorded and perhaps not performed: repeated before anything else, whatever becomes of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from durable import codec
from durable.engine import effects
from durable.engine.calls import attempt_over
from durable.engine.children import revive
from durable.engine.replying import reply_recorded
from durable.model.entity import is_held
from durable.model.sealing import seal
from durable.ops.child import child_start_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.entry import Entry, Kind
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ports import Ports


EFFECTS: Final[frozenset[Kind]] = frozenset({"send", "start", "close"})
"""Kinds whose results stand for an effect."""

LISTED: Final[frozenset[Kind]] = frozenset({"wait"})
"""Kinds that the end of a run has taken back, though they are still waited for when it is retried.

Nobody notes that a retry took place before it has come to its end, so every take-over lists them anew.
"""


def repeat_effects(ports: Ports, run: Run, entries: Sequence[Entry]) -> list[StoredMessage]:
    """Everything since the last clean epoch; gives what the run has sent to itself.

    It needs no replay: the run may be blocked, dead or cancelled next. A settle moves the clean epoch, so no turn may
    settle without this. Every effect is harmless twice.
    """
    retried = any(cut.until >= run.clean_epoch for cut in run.cuts)
    listed = retried or run.taken_over
    recent = [
        entry
        for entry in entries
        if entry.epoch > run.clean_epoch or (listed and entry.kind in LISTED and entry.mark.startswith("?"))
    ]
    ended = _ended_with_the_run(entries) if retried else []
    if not recent and not ended:
        return []
    results = {entry.location: entry for entry in entries if not entry.mark}
    opened = {entry.location: entry for entry in entries if entry.mark.startswith("?")}
    facts = {entry.key: entry for entry in entries}
    over = {attempt_over(entry) for entry in entries}
    sent: list[StoredMessage | None] = []
    for entry in recent:
        if entry.kind == "update" and not entry.mark:
            reply_recorded(ports, run, entry)
        elif (entry.kind in EFFECTS and not entry.mark) or is_held(run, entry):
            sent.append(effects.perform(ports, run, entry))
        elif entry.mark.startswith("?") and entry.location not in results and entry is opened[entry.location]:
            sent.append(None if entry.key in over else effects.perform(ports, run, entry))
        elif (attempt := attempt_over(entry)) is not None:
            effects.close(ports, run, facts[attempt], "graceful")
        elif not entry.mark and entry.location in opened:
            _finish(ports, run, opened[entry.location], entry)
    sent += [revive(ports, run, entry) for entry in ended if entry.epoch <= run.clean_epoch]
    answers = [message for message in sent if message is not None]
    for message in answers:
        ports.store.put_message(run.id, message)
    return answers


def _ended_with_the_run(entries: Sequence[Entry]) -> list[Entry]:
    """Starts of children that the code may still wait for, and has not asked to end itself."""
    given_up = {codec.decode(entry.value, str) for entry in entries if entry.kind == "close" and not entry.mark}
    _, _, current = seal(list(entries))
    started = [entry for entry in effects.still_open(current) if entry.kind == "start"]
    return [entry for entry in started if child_start_from(entry.value).id not in given_up]


def _finish(ports: Ports, run: Run, opened: Entry, result: Entry) -> None:
    if effects.ends_an_effect(result):
        effects.close(ports, run, opened, run.cancel_requested or "graceful")
    else:
        effects.completed(ports, run, opened)
