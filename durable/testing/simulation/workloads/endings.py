"""What must be true when a run has ended, whatever it did: about its messages, and about what it has undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import from_json

from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import effects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.entry import Entry
    from durable.testing.simulation.workloads.workload import Ending


def check_completed(ending: Ending) -> None:
    """The run has come to its regular end."""
    run = ending.watch.run
    if run.status != "completed":
        raise Violation(f"I1: the run ended as {run.status}: {run.error or run.reason}")


def check_messages(ending: Ending) -> None:
    """I3: every accepted message was consumed, or is still there to be."""
    kept = ending.watch.mailbox(ending.watch.run.id)
    consumed = ending.watch.consumed(ending.sent)
    for message in ending.sent:
        if message not in consumed and message not in kept and not _queued(message, ending.queued):
            raise Violation(f"I3: message {message} has vanished")


def check_heard(ending: Ending, heard: Sequence[int]) -> None:
    """I3, for the receiver: it has heard each consumed message, and once. 0 is a wait that came to its deadline."""
    messages = [f"m{number}" for number in heard if number]
    consumed = ending.watch.consumed(ending.sent)
    if len(messages) != len(set(messages)) or set(messages) != consumed:
        raise Violation(f"I3: heard {messages}, consumed {sorted(consumed)}")


def check_undone(ending: Ending) -> None:
    """What steps have done is undone at least once, the latest first, and how each undo ended is recorded."""
    history = ending.watch.history()
    steps = undoable(ending)
    outcomes = [history.get(f"{step.location}!") for step in steps]
    missing = [step.location for step, outcome in zip(steps, outcomes, strict=True) if outcome is None]
    if missing:
        raise Violation(f"rollback: it is not recorded how the undo of {missing} ended")
    recorded = [outcome for outcome in outcomes if outcome is not None]
    if any(outcome.error for outcome in recorded):
        raise Violation(f"rollback: {[outcome.location for outcome in recorded if outcome.error]} could not be undone")
    if recorded != sorted(recorded, key=lambda outcome: outcome.order):
        raise Violation(f"rollback: not the latest step first: {[outcome.location for outcome in recorded]}")
    undone = list(dict.fromkeys(effects.undone))
    if undone != [number_of(step) for step in steps]:
        raise Violation(f"rollback: {undone} was undone, {[number_of(step) for step in steps]} was done")
    begun = min((outcome.order for outcome in recorded), default=None)
    late = [
        entry.key for entry in history.values() if begun is not None and entry.order > begun and "!" not in entry.mark
    ]
    if late:
        raise Violation(f"rollback: {late} was recorded after it had begun")
    if ending.fine and len(effects.undone) != len(steps):
        raise Violation(f"rollback: a healthy run has undone steps twice: {effects.undone}")


def undoable(ending: Ending) -> Sequence[Entry]:
    """Results of steps that can be undone, pruned ones too, the latest first."""
    entries = [*ending.watch.history().values(), *ending.watch.kept().values()]
    steps = {entry.order: entry for entry in entries if entry.compensation is not None and not entry.mark}
    return sorted(steps.values(), key=lambda entry: entry.order, reverse=True)


def number_of(step: Entry) -> int:
    """The number that the step has made."""
    return from_json(step.value or "")["number"]


def _queued(message: str, queued: Sequence[str]) -> bool:
    return any(f'"{message}"' in body for body in queued)
