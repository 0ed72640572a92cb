"""Runs of a singleton: no turn executes their code while they hold no slot of their lane.

Every turn asks, because whoever has a slot may lose it: its run failed, gave it back, and was retried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.engine.stopping import LONGEST_REMAINDER
from durable.errors import UnknownWorkflow
from durable.lanes import Granted, enter_run, holds
from durable.model.lane import LaneSpec, slot_reason
from durable.model.run import Settlement

if TYPE_CHECKING:
    from typing import Any

    from durable.app import App
    from durable.model.run import Run
    from durable.ports import Ports


def admitted(app: App[Any], ports: Ports, run: Run) -> bool:
    """Whether the run's code may be executed now; one that is not in its lane gets a place there, however many wait."""
    if run.lane is None:
        return True
    try:
        singleton = app.find(run.workflow, run.version).singleton
    except UnknownWorkflow:
        return True  # it is going to be blocked
    if singleton is None or holds(ports, run.lane, run.lineage or run.id):
        return True
    spec = LaneSpec(name=run.lane, limit=singleton.limit)
    return isinstance(enter_run(ports, spec, run.id, lineage=run.lineage), Granted)


def in_line(run: Run, now: float) -> Settlement:
    """The run goes on waiting for a slot, and the grant of one wakes it. Its time has not begun if it has not."""
    fresh = run.status == "pending"
    timed = run.deadline is not None and run.deadline > LONGEST_REMAINDER and not fresh
    return Settlement(
        status="pending" if fresh else "suspended" if run.ending is None else "rolling_back", at=now,
        started_at=None if fresh else run.started_at, due_at=run.deadline if timed else None, armed=run.armed,
        waiting_for=run.waiting_for, waits=run.waits, waits_digest=run.waits_digest, reason=slot_reason(run.lane or ""),
        code_version=run.code_version, python=run.python, ending=run.ending, failed_at=run.failed_at, error=run.error,
        output=run.output, output_stored=run.output_stored, deadline=run.deadline if timed else None,
    )  # fmt: skip
