"""Effects that a lost turn has recorded and perhaps not performed: repeated before anything else, whatever becomes of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.engine.replying import reply_recorded
from durable.engine.sending import send_recorded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import Ports


def repeat_effects(ports: Ports, run: Run, entries: Iterable[Entry]) -> None:
    """Sends and answers since the last clean epoch. It needs no replay: the run may be blocked, dead or cancelled next.

    A settle moves the clean epoch, so no turn may settle without this. Both effects are harmless twice.
    """
    for entry in entries:
        if entry.mark or entry.epoch <= run.clean_epoch:
            continue
        if entry.kind == "send":
            send_recorded(ports, entry)
        elif entry.kind == "update":
            reply_recorded(ports, run, entry)
