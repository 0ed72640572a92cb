"""Those who hold slots or wait for one: whether they live, and what is done for them once they have it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from durable.model.envelope import Start
from durable.model.lane import slot_reason
from durable.model.task import task_from
from durable.records import last_of_lineage

if TYPE_CHECKING:
    from durable.model.lane import Ticket
    from durable.model.run import Run
    from durable.model.task import StepTask
    from durable.ports import Ports

log = logging.getLogger("durable")


def task_action(task: StepTask) -> str:
    """What a ticket says whose slot is for an attempt at a remote step."""
    return json.dumps({"task": task.to_text()}, ensure_ascii=False)


def start_action(run_id: str) -> str:
    """What a ticket says whose slot is for a run."""
    return json.dumps({"start": run_id})


def act(ports: Ports, ticket: Ticket) -> bool:
    """Does what the ticket says; False if nobody can read it."""
    try:
        action: dict[str, Any] = json.loads(ticket.action)
        task = task_from(action["task"]) if "task" in action else None
        run_id: str = "" if task is not None else action["start"]
    except (ValueError, KeyError):
        log.exception("the ticket of %s says nothing that could be done; its slot goes to the next", ticket.holder)
        return False
    if task is not None:
        ports.steps.send(task)
    else:
        ports.runs.send(Start(run_id=run_id, id=ports.new_id()))
    return True


def alive(ports: Ports, lane: str, holder: str, *, if_missing: bool = False) -> bool:
    """Whether a holder may still need its slot of the lane.

    Its run has not ended, and goes on in this lane; of an attempt that it has not been closed.
    """
    run_id, _, task_id = holder.partition("|")
    run = ports.store.get(run_id) if task_id else last_of_lineage(ports, run_id)
    if run is None:
        return if_missing
    if not task_id:
        return not run.ended and run.lane == lane
    if run.ended:
        return False
    row = ports.store.get_task(run_id, task_id)
    return row is None or row.closed is None


def remind(ports: Ports, holder: str) -> None:
    """Wakes a run that has a slot and does not know: its wake was lost, or it was created after its grant."""
    run = unaware(ports, holder)
    if run is not None:
        ports.runs.send(Start(run_id=run.id, id=ports.new_id()))


def unaware(ports: Ports, holder: str) -> Run | None:
    """The run of a holder if it has had no turn since it waited for its slot, and nothing else will wake it."""
    run = None if "|" in holder else last_of_lineage(ports, holder)
    if run is None or run.ended or run.lane is None or run.due_at is not None or run.reason != slot_reason(run.lane):
        return None
    return run
