"""The services of one seed, with the quirks of the real ones: queues that repeat, delay and reorder, schedules that are not on time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from durable.adapters.memory import MemoryRunQueue, MemoryStepQueue, MemoryTimers
from durable.adapters.memory.queues import MemoryQueue
from durable.adapters.memory.timers import SCHEDULE_LEAD, Schedule
from durable.model.envelope import Deliver, Publish, from_body

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random  # noqa: TID251 - handed in, seeded

    from durable.adapters.memory import Received, VirtualClock
    from durable.ports import Clock, Ids
    from durable.testing.simulation.luck import Luck
    from durable.testing.simulation.weather import Weather

MANY: Final = 1000
"""Nothing goes to the dead letters: what fails again and again here fails for the weather."""


class UnorderedRunQueue(MemoryRunQueue):
    """A runs queue without groups: deliveries of one run overlap all the time."""

    def __init__(self, clock: Clock, *, visibility_timeout: float, max_receives: int) -> None:
        MemoryQueue.__init__(self, clock, fifo=False, visibility_timeout=visibility_timeout, max_receives=max_receives)


class SimulatedTimers(MemoryTimers):
    """Its schedules fire at some moment of their minute; in bad weather much later, twice, or never."""

    def __init__(
        self, clock: Clock, ids: Ids, runs: MemoryRunQueue, *, threshold: float, visibility_timeout: float,
        random: Random, luck: Luck, note: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(
            clock, ids, runs, threshold=threshold, visibility_timeout=visibility_timeout, max_receives=MANY
        )
        self._random = random
        self._luck = luck
        self._note = note
        self._placed: set[tuple[str, float]] = set()

    def fire_schedules(self) -> int:
        """Sends what is due to the runs queue."""
        for schedule in self.schedules:
            if (schedule.run_id, schedule.due_at) not in self._placed:
                self._place_in_its_minute(schedule)
        due = [schedule for schedule in self.schedules if schedule.fires_at <= self._clock.now()]
        for schedule in due:
            self._fire(schedule)
        return len(due)

    def _place_in_its_minute(self, schedule: Schedule) -> None:
        """EventBridge Scheduler fires within a minute; late ones are rare."""
        key = (schedule.run_id, schedule.due_at)
        self._placed.add(key)
        late = self._random.uniform(0, SCHEDULE_LEAD) + (100.0 if self._luck.fails(0.2) else 0.0)
        self._schedules[key] = replace(schedule, fires_at=schedule.fires_at + late)

    def _fire(self, schedule: Schedule) -> None:
        self.drop_schedule(schedule)
        self._placed.discard((schedule.run_id, schedule.due_at))
        if self._luck.fails(0.2):
            self._note(f"a schedule of {schedule.run_id} never fires")
            return
        self._runs.accept(schedule.body, group=schedule.run_id)
        if self._luck.fails(0.2):
            self._note(f"a schedule of {schedule.run_id} fires twice")
            self._runs.enqueue(schedule.body, group=schedule.run_id)


class Queues:
    """The three queues of one seed."""

    def __init__(
        self, clock: VirtualClock, ids: Ids, weather: Weather, random: Random, luck: Luck, note: Callable[[str], None]
    ) -> None:
        queue = MemoryRunQueue if weather.ordered else UnorderedRunQueue
        self.runs = queue(clock, visibility_timeout=weather.visibility, max_receives=MANY)
        self.timers = SimulatedTimers(
            clock, ids, self.runs, threshold=weather.threshold, visibility_timeout=weather.visibility, random=random,
            luck=luck, note=note,
        )  # fmt: skip
        # Longer than any body takes: else a task would come again for ever, whatever its workers answer.
        self.steps = MemoryStepQueue(clock, visibility_timeout=12 * weather.visibility, max_receives=MANY)
        self._random = random
        self._unruly = weather.unruly
        self._luck = luck
        self._note = note

    @property
    def moments(self) -> list[float]:
        """When something may be received or fires."""
        moments = (
            self.runs.next_visible_at(), self.timers.next_visible_at(), self.timers.next_schedule_at(),
            self.steps.next_visible_at(),
        )  # fmt: skip
        return [moment for moment in moments if moment is not None]

    def receive(self, source: MemoryQueue, most: int) -> Sequence[Received]:
        """What a queue gives; of a standard queue in any order, and not all of it at once, or only once."""
        received = source.receive(most)
        if source is self.runs:
            return received
        now: list[Received] = []
        for one in received:
            if self._loses(source, one):
                source.acknowledge(one.receipt)
            elif self._unruly and self._random.random() < self._unruly:
                if self._random.random() < 0.5:
                    source.change_visibility(one.receipt, self._random.uniform(0, 15))
                    continue
                source.enqueue(one.body, delay=self._random.uniform(0, 15))
                now.append(one)
            else:
                now.append(one)
        if self._unruly:
            self._random.shuffle(now)
        return now

    def _loses(self, source: MemoryQueue, one: Received) -> bool:
        """Timers may be lost, and tasks; messages never are."""
        if not self._luck.fails(0.1 if source is self.timers else 0.05):
            return False
        lost = source is self.steps or is_mere_wake(one.body)
        if lost:
            self._note(f"lost: {one.body[:80]}")
        return lost


def is_mere_wake(body: str) -> bool:
    """Whether all that it says is to look."""
    return not isinstance(from_body(body), Deliver | Publish)
