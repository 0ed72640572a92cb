"""The maintenance function: every minute, finds runs that should have been woken, and deletes those whose time is over."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

from handlers import bootstrap

log = logging.getLogger("durable")


class LambdaContext(Protocol):
    """The part of Lambda's context that we look at."""

    def get_remaining_time_in_millis(self) -> int: ...


def handler(_event: Mapping[str, Any], context: LambdaContext) -> dict[str, int]:
    """Sweeps once; the answer is for the logs."""
    sweep = bootstrap.container().maintenance.sweep(remaining=context.get_remaining_time_in_millis() / 1000)
    if sweep.woken or sweep.unblocked:
        log.warning(
            "maintenance woke %d overdue runs and tried %d blocked ones again", sweep.woken, sweep.unblocked,
            extra={"counts": {"OverdueRuns": sweep.woken}},
        )  # fmt: skip
    if sweep.deleted:
        log.info("maintenance deleted %d runs whose retention was over", sweep.deleted)
    return asdict(sweep)


bootstrap.prepare(lambda container: container.maintenance)
