"""Says in the log that a run needs somebody, with a count that the functions make a metric of."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from durable.model.run import ATTENTION

if TYPE_CHECKING:
    from durable.model.run import Run, Settlement

log = logging.getLogger("durable")

COUNTED: Final = {"blocked": "RunsBlocked", "dead": "RunsDead", "failed": "RunsFailed"}
"""Names of the metrics, by status."""


def call_for(run: Run, settlement: Settlement) -> None:
    """One line for a run that has failed, died or is blocked. What its error says is in its record, and is not told here."""
    if settlement.status not in ATTENTION:
        return
    why = settlement.error.qualified if settlement.error is not None else "no error"
    level = logging.WARNING if settlement.status == "failed" else logging.ERROR
    log.log(
        level, "run %s (%s %s) is %s: %s", run.id, run.workflow, run.version, settlement.status, why,
        extra={"counts": {COUNTED[settlement.status]: 1}},
    )  # fmt: skip
