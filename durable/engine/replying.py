"""Answers to updates that a run has recorded: stored for their callers, again after a crash if need be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.reply import KEPT_SECONDS, reply_from

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import Ports


def reply_recorded(ports: Ports, run: Run, entry: Entry) -> None:
    """Stores the answer that the entry holds. Twice is harmless: it is the same answer.

    Under the id of the lineage: whoever waits for it may know an earlier run only.
    """
    text = entry.value or ""
    ports.store.put_reply(run.lineage or run.id, reply_from(text).id, text, expires_at=ports.clock.now() + KEPT_SECONDS)
