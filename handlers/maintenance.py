"""The maintenance function: every minute, finds runs that should have been woken."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from handlers import bootstrap

log = logging.getLogger("durable")


def handler(_event: Mapping[str, Any], _context: object) -> dict[str, int]:
    """Sweeps once; the answer is for the logs."""
    sweep = bootstrap.container().maintenance.sweep()
    if sweep.woken or sweep.unblocked:
        log.warning("maintenance woke %d overdue runs and tried %d blocked ones again", sweep.woken, sweep.unblocked)
    return {"woken": sweep.woken, "unblocked": sweep.unblocked}


bootstrap.prepare(lambda container: container.maintenance)
