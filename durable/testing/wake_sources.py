"""Whether every open run will be woken by something: a queue, a timer, maintenance, or a message from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.envelope import from_body
from durable.model.history import counting_entries
from durable.model.lane import slot_reason

if TYPE_CHECKING:
    from durable.adapters.memory import MemoryStore
    from durable.model.run import Run
    from durable.testing.services import Services


def check_wake_sources(services: Services) -> None:
    """Raises AssertionError naming the first run that nothing would wake, though it has not ended."""
    store = services.memory
    queues = (services.runs, services.timers)
    queued = {from_body(message.body).run_id for queue in queues for message in queue.pending}
    for run in store.runs:
        if run.ended or run.status == "blocked" or run.due_at is not None or run.id in queued:
            continue
        if run.lane is not None and run.reason == slot_reason(run.lane) and _is_in_lane(store, run.lane, run):
            continue
        if not run.waiting_for:
            raise AssertionError(
                f'nothing will wake run "{run.id}": it is {run.status}, waits for nothing and is not due'
            )
        if unread := _readable(store, run):
            raise AssertionError(f'nothing will wake run "{run.id}", which has not read {", ".join(unread)}')


def _is_in_lane(store: MemoryStore, lane: str, run: Run) -> bool:
    """A run that waits for a slot is woken by its grant; one that has it and does not know is told when the lane is due."""
    state, holder = store.read_lane(lane, tickets=0), run.lineage or run.id
    return state is not None and (holder in state.lane.holders or store.find_ticket(lane, holder) is not None)


def _readable(store: MemoryStore, run: Run) -> list[str]:
    """Channels of the messages that the run waits for and has not consumed."""
    history = counting_entries(run, store.history(run.id))
    consumed = {message.id for entry in history for message in entry.messages}
    left = [message for message in store.mailbox(run.id) if message.id not in consumed]
    # An invocation that stood still may put back what was consumed by entries that are gone: the next turn deletes it.
    buried = store.buried(run.lineage or run.id, [message.id for message in left]) if run.pruned and left else ()
    unread = [message.channel for message in left if message.id not in buried]
    any_signal = "*" in run.waiting_for
    return [c for c in unread if c in run.waiting_for or (any_signal and c.startswith("signal:"))]
