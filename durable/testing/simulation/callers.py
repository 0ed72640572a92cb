"""Whoever deals with the run from outside: sends messages, some twice and some again much later, and cancels it."""

from __future__ import annotations

from bisect import insort
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from durable.client import Client
from durable.errors import RunEnded
from durable.model.envelope import Deliver, Wake, to_body
from durable.testing.simulation.workloads.effects import GO, RUN_ID, app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random  # noqa: TID251 - handed in, seeded

    from durable.adapters.memory import MemoryRunQueue
    from durable.model.run import CancelMode
    from durable.ports import Ports
    from durable.testing.simulation.outside import Work
    from durable.testing.simulation.watch import Watch
    from durable.testing.simulation.workloads import Workload

LATER = 100.0
"""Seconds within which a message comes again."""
UNPLANNED = 24
"""Messages that come only because the run waits for one."""


@dataclass(slots=True)
class Cancellation:
    """What a client is going to ask for."""

    moment: float
    mode: CancelMode
    tried: bool = False


class Callers:
    """Their plan for one seed, and what they have done of it."""

    def __init__(
        self, workload: Workload, random: Random, ports: Ports, runs: MemoryRunQueue, note: Callable[[str], None], *,
        flood: bool,
    ) -> None:  # fmt: skip
        self._workload = workload
        self._random = random
        self._ports = ports
        self._runs = runs
        self._note = note
        self.sent: list[str] = []
        self.asked: set[CancelMode] = set()
        self._acted = True
        self._messages = self._moments_of_messages(flood)
        self._again: list[tuple[float, str]] = []
        self._unplanned = 0
        self._cancels: list[Cancellation] = []
        if workload.cancels:
            modes = random.choice(workload.cancels)
            latest = random.choice([20, 60, 200])
            moments = sorted(ports.clock.now() + random.uniform(0, latest) for _ in modes)
            self._cancels = [Cancellation(moment, mode) for moment, mode in zip(moments, modes, strict=True)]

    def _moments_of_messages(self, flood: bool) -> list[float]:
        """Some come in bursts."""
        moment = self._ports.clock.now()
        moments: list[float] = []
        for _ in range(self._random.randint(*self._workload.messages)):
            moment += self._random.choice([0.0, self._random.uniform(0, 2), self._random.uniform(0, 30)])
            moments.append(moment)
        if flood:
            moments = sorted([*moments, *[self._random.choice(moments)] * self._workload.flood])
        return moments

    @property
    def moments(self) -> list[float]:
        """When something will come."""
        again, cancels = [moment for moment, _ in self._again[:1]], [one.moment for one in self._cancels]
        return [*self._messages[:1], *again, *cancels]

    @property
    def has_acted(self) -> bool:
        """Whether something has come since this was asked last."""
        acted, self._acted = self._acted, False
        return acted

    def begin_due(self) -> Iterator[Work]:
        """Sends the messages whose moment has come, and gives the cancellation whose has."""
        self._send_due()
        cancel = self._cancellation()
        if cancel is not None:
            self._acted = True
            yield "cancel", cancel

    def is_over(self, watch: Watch) -> bool:
        """Whether the run has ended."""
        return watch.run.ended

    def when_quiet(self, watch: Watch) -> bool:
        """Sends another message to a run that waits for one."""
        if not watch.run.waiting_for or self._unplanned >= UNPLANNED:
            return False
        self._unplanned += 1
        self._messages.insert(0, self._ports.clock.now())
        return True

    def hurry(self) -> None:
        """The next message or cancellation comes now."""
        now = self._ports.clock.now()
        if self._cancels and self._random.random() < 0.05:
            self._cancels[0].moment = now
        elif self._messages:
            self._messages[0] = now

    def _send_due(self) -> None:
        now = self._ports.clock.now()
        while self._messages and self._messages[0] <= now:
            del self._messages[0]
            self._acted = True
            message = f"m{len(self.sent) + 1}"
            self.sent.append(message)
            for _ in range(2 if self._random.random() < 0.2 else 1):
                self._send(message)
            if self._workload.resent and self._random.random() < self._workload.resent:
                insort(self._again, (now + self._random.uniform(5, LATER), message))
        while self._again and self._again[0][0] <= now:
            self._send(self._again.pop(0)[1])

    def _send(self, message: str) -> None:
        run_id = self._random.choice([RUN_ID, *self._known_ids()])
        self._note(f"send {message} to {run_id}")
        deliver = Deliver(run_id=run_id, id=message, name=GO.name, body=message.removeprefix("m"))
        self._runs.enqueue(to_body(deliver), group=run_id)
        if self._random.random() < 0.3:  # a wake too many does no harm, and makes invocations meet
            wake = Wake(run_id=run_id, id=self._ports.new_id(), reason="simulated")
            self._ports.timers.send(wake, delay=self._random.choice([0, 1, 2]))

    def _known_ids(self) -> list[str]:
        """The run that callers find when they look for the last of the lineage."""
        run = self._ports.store.get(RUN_ID)
        while run is not None and run.successor is not None:
            run = self._ports.store.get(run.successor)
        return [] if run is None or run.id == RUN_ID else [run.id]

    def _cancellation(self) -> Callable[[Ports], None] | None:
        """What a client does now to cancel the run. It may die on the way, and tries again if nothing has come of it."""
        now = self._ports.clock.now()
        planned = next((one for one in self._cancels if one.moment <= now), None)
        if planned is None:
            return None
        run = self._ports.store.get(RUN_ID)
        if run is None or run.ended or (planned.tried and run.cancel_requested in {planned.mode, "compensate"}):
            self._cancels.remove(planned)
            return None
        planned.moment, planned.tried = now + 30, True

        def cancel(ports: Ports) -> None:
            with suppress(RunEnded):
                Client(app, ports).cancel(RUN_ID, planned.mode)
                self.asked.add(planned.mode)
            if planned in self._cancels:
                self._cancels.remove(planned)

        return cancel
