"""What must hold when all is quiet: no queue, timer or invocation is left, so whatever runs wait for must come from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.testing.simulation.violation import Violation

if TYPE_CHECKING:
    from durable.adapters.memory import MemoryStore
    from durable.model.run import Run
    from durable.testing.simulation.life import Life
    from durable.testing.simulation.watch import Watch


def check_quiet(watch: Watch, *, fine: bool) -> None:
    """I2, I5: no run sleeps that should not."""
    for run in watch.store.runs:
        if run.outbox is not None and (fine or run.due_at is None):
            raise Violation(f"I6: {run.id} has ended, and nothing makes it tell others")
        if not run.ended:
            _check_asleep(run, watch.lives[run.id], fine=fine)


def _check_asleep(run: Run, life: Life, *, fine: bool) -> None:
    if run.due_at is None:
        wanted = [channel for channel in life.unread() if _reads(run, channel)]
        if wanted and run.status != "blocked":
            raise Violation(f"I2: {run.id} sleeps and does not read {wanted}")
        if run.cancel_requested:
            raise Violation(f"I2: {run.id} sleeps, and somebody has cancelled it")
    elif fine:
        raise Violation(f"I2: {run.id} is due, and no timer is set: {run.due_at} {run.reason}")


def _reads(run: Run, channel: str) -> bool:
    return channel in run.waiting_for or ("*" in run.waiting_for and channel.startswith("signal:"))


def maintenance_is_needed(store: MemoryStore, code_version: str, soon: float) -> bool:
    """Whether maintenance will find something to do."""
    return bool(
        store.due_runs(before=soon, limit=1)
        or store.due_lanes(before=soon, limit=1)
        or store.blocked_runs(not_under=code_version, limit=1)
    )


def check_all_ended(watch: Watch) -> None:
    """Every run has come to its end, and owes nothing to anybody."""
    for run in watch.store.runs:
        if not run.ended:
            raise Violation(f"I2: {run.id} never ends: {run.status}, waits for {run.waiting_for}: {run.reason}")
        if run.outbox is not None:
            raise Violation(f"I6: {run.id} has ended and has yet to tell others")


def check_lanes_free(watch: Watch) -> None:
    """Nobody has a slot any more, or waits for one."""
    for run in watch.store.runs:
        if run.lane is not None:
            check_lane_free(watch, run.lane)


def check_lane_free(watch: Watch, name: str) -> None:
    """Nobody has a slot of this lane any more, or waits for one."""
    state = watch.store.read_lane(name, tickets=10)
    if state is not None and (state.lane.holders or state.lane.waiting or state.places):
        raise Violation(
            f"flow control: {name} has the holders {list(state.lane.holders)}, waiting {[place.holder for place in state.places]}"
        )
