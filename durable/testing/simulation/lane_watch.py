"""What must hold of lanes in every moment: no more holders than slots, whoever works has a slot, and the first in line is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.envelope import Deliver
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import effects

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.task import StepTask
    from durable.testing.simulation.seams import PortCall
    from durable.testing.simulation.watch import Watch

TOLD = "attempts whose end was told"
HELD = "holders of lanes"


def look_at_lanes(watch: Watch, call: PortCall) -> None:
    """Called after every port call."""
    match call.name:
        case "runs.send":
            envelope = call.args[0]
            if isinstance(envelope, Deliver) and envelope.kind == "result":
                effects.notes.setdefault(TOLD, set()).add((envelope.run_id, envelope.id))
        case "store.write_lane":
            _check_lane(watch, call.args[0].spec.name)
        case "store.put_entry":
            _check_run(watch, call.args[0], call.args[1])
        case _:
            pass
    if effects.performing and call.name.startswith("store."):
        _check_workers(watch)


def _check_lane(watch: Watch, name: str) -> None:
    """Not more holders than slots; of those who wait the first comes in."""
    state = watch.store.read_lane(name, tickets=1000)
    before: dict[str, frozenset[str]] = effects.notes.setdefault(HELD, {})
    held = before.get(name, frozenset())
    holders = frozenset[str]() if state is None else frozenset(state.lane.holders)
    before[name] = holders
    if state is None:
        return
    limit = state.lane.spec.limit
    if limit is not None and len(holders) > limit:
        raise Violation(f"flow control: {name} has {len(holders)} holders, and {limit} slots: {sorted(holders)}")
    ranks = {place.holder: place.rank for place in state.places}
    waiting = [rank for holder, rank in ranks.items() if holder not in holders]
    for holder in holders - held:
        rank = ranks.get(holder)
        overtaken = [other for other in waiting if rank is None or other < rank]
        if overtaken:
            raise Violation(f"flow control: {holder} has come into {name} before {overtaken}")


def _check_run(watch: Watch, run_id: str, entry: Entry) -> None:
    """A run of a singleton goes on only while it has its slot."""
    run = watch.store.get(run_id)
    if run is None or run.lane is None or run.ended or entry.epoch != run.epoch or entry.kind == "cancel":
        return
    if not _holds(watch, run.lane, run.lineage or run.id):
        raise Violation(f"singletons: {run_id} records {entry.key} without a slot of {run.lane}")


def _check_workers(watch: Watch) -> None:
    """Whoever performs an attempt that still counts has a slot."""
    for task in effects.performing:
        if task.lane is not None and _counts(watch, task) and not _holds(watch, task.lane, task.holder):
            raise Violation(f"flow control: {task.holder} is being performed without a slot of {task.lane}")


def _counts(watch: Watch, task: StepTask) -> bool:
    run = watch.store.get(task.run_id)
    row = watch.store.get_task(task.run_id, task.id)
    told = (task.run_id, task.id) in effects.notes.get(TOLD, ())
    return run is not None and not run.ended and not told and (row is None or row.closed is None)


def _holds(watch: Watch, name: str, holder: str) -> bool:
    state = watch.store.read_lane(name, tickets=0)
    return state is not None and holder in state.lane.holders
