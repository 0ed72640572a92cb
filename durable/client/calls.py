"""The remote steps that a run waits for, as operators look at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from durable.client.part import ClientPart
from durable.client.reading import history
from durable.model.call import attempt_of, order_from, task_id_of
from durable.model.task import lane_holder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from durable.model.entry import Entry
    from durable.ports import Ports

SHOWN: Final = 50
"""Each costs a request or two."""

CallState = Literal["limited", "queued", "running", "pausing"]
"""It waits for its turn on a limited queue; for a worker; for its result; for its next attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A remote step without a result."""

    location: str
    name: str
    """The remote step's."""
    queue: str
    attempt: int
    state: CallState
    since: float
    """When the attempt was opened, seconds since 1970; of one that pauses, when the attempt failed."""
    retry_at: float | None = None
    picked_up_at: float | None = None
    heartbeat_at: float | None = None
    """When its worker was last heard of."""
    worker: str | None = None
    progress: str | None = None
    """JSON text of what the worker has told."""


class Calls(ClientPart):
    """The part of the client that looks at remote steps."""

    def open_calls(self, run_id: str, /, *, limit: int = SHOWN) -> Sequence[OpenCall]:
        """The remote steps that the run waits for, in the order of their calls, and what their workers have told.

        Each costs a request or two. Raises RunNotFound.
        """
        calls = _open(history(self.ports, run_id))[:limit]
        return [_open_call(self.ports, run_id, opened, latest) for opened, latest in calls]


def _open(entries: Iterable[Entry]) -> list[tuple[Entry, Entry]]:
    """Of each, the entry that opened its latest attempt, and the latest about it."""
    found: dict[str, tuple[Entry, Entry]] = {}
    for entry in entries:
        if entry.kind != "call":
            continue
        if entry.mark.startswith("?"):
            found[entry.location] = (entry, entry)
        elif entry.mark.startswith("@") and entry.location in found:
            found[entry.location] = (found[entry.location][0], entry)
        elif not entry.mark:
            found.pop(entry.location, None)
    return list(found.values())


def _open_call(ports: Ports, run_id: str, opened: Entry, latest: Entry) -> OpenCall:
    order, attempt = order_from(opened.value), task_id_of(opened)
    row = None if latest is not opened else ports.store.get_task(run_id, attempt)
    state: CallState = "pausing" if latest is not opened else "queued"
    if row is not None and row.picked_up_at is not None:
        state = "running"
    elif state == "queued" and order.lane is not None:
        waits = ports.store.find_ticket(order.lane.spec.name, lane_holder(run_id, attempt)) is not None
        state = "limited" if waits else "queued"
    return OpenCall(
        location=opened.location, name=order.name, queue=order.queue, attempt=attempt_of(opened), state=state,
        since=latest.at, retry_at=latest.retry_at,
        picked_up_at=None if row is None else row.picked_up_at,
        heartbeat_at=None if row is None else row.heartbeat_at,
        worker=None if row is None else row.worker or None,
        progress=None if row is None else row.progress,
    )  # fmt: skip
