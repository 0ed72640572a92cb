"""Timers in memory: a queue with delays for what is due soon, one-time schedules for what is due later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from durable.adapters.memory.queues import MemoryQueue, MemoryRunQueue
from durable.adapters.sizes import check_delay, check_envelope
from durable.model.envelope import TimerFired, to_body
from durable.model.limits import SQS_DELAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.envelope import Envelope
    from durable.ports import Clock, Ids

SCHEDULE_LEAD: Final = 60.0
"""EventBridge Scheduler fires within the minute that starts at the time it is given, so it is given one earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A one-time schedule: it sends its body to the runs queue and is gone."""

    run_id: str
    due_at: float
    fires_at: float
    body: str


class MemoryTimers(MemoryQueue):
    """Implements `Timers`; it is itself the standard queue that the orchestrator receives from."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        runs: MemoryRunQueue,
        *,
        threshold: float = SQS_DELAY_SECONDS,
        visibility_timeout: float = 150.0,
        max_receives: int = 10,
    ) -> None:
        super().__init__(clock, fifo=False, visibility_timeout=visibility_timeout, max_receives=max_receives)
        self._ids = ids
        self._runs = runs
        self._threshold = threshold
        self._schedules: dict[tuple[str, float], Schedule] = {}

    def arm(self, run_id: str, due_at: float) -> None:
        timer = TimerFired(run_id=run_id, due_at=due_at, id=self._ids())
        delay = due_at - self._clock.now()
        fires_at = due_at - SCHEDULE_LEAD
        if delay <= self._threshold or fires_at <= self._clock.now():
            self.send(timer, delay=min(max(0.0, delay), SQS_DELAY_SECONDS))
            return
        schedule = Schedule(run_id=run_id, due_at=due_at, fires_at=fires_at, body=to_body(timer))
        with self._lock:
            self._schedules.setdefault((run_id, due_at), schedule)

    def send(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        body = to_body(envelope)
        check_envelope(envelope, body)
        self.enqueue(body, delay=check_delay(delay))

    @property
    def schedules(self) -> Sequence[Schedule]:
        """The schedules that have not fired, the next one first."""
        with self._lock:
            return sorted(self._schedules.values(), key=lambda schedule: (schedule.fires_at, schedule.run_id))

    def next_schedule_at(self) -> float | None:
        """When the next schedule fires, a moment that may have passed; None if there is none."""
        return min((schedule.fires_at for schedule in self.schedules), default=None)

    def fire_schedules(self) -> int:
        """Sends what is due to the runs queue, as Scheduler would at this moment; says how many."""
        due = [schedule for schedule in self.schedules if schedule.fires_at <= self._clock.now()]
        for schedule in due:
            self._runs.accept(schedule.body, group=schedule.run_id)
            self.drop_schedule(schedule)
        return len(due)

    def drop_schedule(self, schedule: Schedule) -> None:
        """Forgets a schedule, fired or lost."""
        with self._lock:
            self._schedules.pop((schedule.run_id, schedule.due_at), None)
