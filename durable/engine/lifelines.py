"""Deadlines that signs of life put off: looked at when they have passed, so that a heartbeat wakes nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.ops.callback import CallbackOperation

if TYPE_CHECKING:
    from durable.engine.waiting import Waits
    from durable.ops.operation import WaitOperation
    from durable.ports import Ports


def given_more_time(ports: Ports, run_id: str, waits: Waits, wait: WaitOperation) -> bool:
    """Whether a wait whose deadline has passed goes on, because the outside system has given a sign of life since."""
    if not isinstance(wait, CallbackOperation) or not wait.beats:
        return False
    deadline = wait.put_off(ports.store.get_task(run_id, wait.place), ports.clock.now())
    if deadline is None:
        return False
    waits.put_off(wait, deadline)
    return True
