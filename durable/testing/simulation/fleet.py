"""Warm containers of one seed: each on a machine with a clock of its own, with the code that was deployed when it started."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from durable.engine.options import EngineOptions
from durable.engine.orchestrator import Delivery, Orchestrator
from durable.engine.steps import InlineStepRunner
from durable.engine.worker import RemoteWorker
from durable.model.delivery import TaskDelivery
from durable.model.task import task_from
from durable.testing.simulation.weather import SkewedClock
from durable.testing.simulation.workloads.effects import effects

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random  # noqa: TID251 - handed in, seeded

    from durable.adapters.memory import Received, VirtualClock
    from durable.app import App
    from durable.ports import Ports
    from durable.testing.simulation.weather import Weather

Kind = Literal["orchestrator", "worker"]

INVOCATION_SECONDS: Final = 20.0
OLD_CODE_SECONDS: Final = 60.0
"""How long containers with the code before a deployment still get work."""


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """A warm process."""

    kind: Kind
    code_version: str
    server: Orchestrator | RemoteWorker

    def process(self, received: Sequence[Received]) -> Sequence[str]:
        """Receipts of what must come back."""
        if isinstance(self.server, RemoteWorker):
            tasks = [TaskDelivery(id=one.receipt, body=one.body, receive_count=one.receive_count) for one in received]
            effects.serve(task_from(received[0].body))
            return self.server.process(tasks, remaining=10 * INVOCATION_SECONDS)
        deliveries = [
            Delivery(id=one.receipt, body=one.body, arrived_at=one.sent_at, sequence=one.sequence) for one in received
        ]
        return self.server.process(deliveries, remaining=INVOCATION_SECONDS)


class Fleet:
    """Gives out containers, and takes back those that have not died."""

    def __init__(
        self, apps: Sequence[App[Any]], ports: Ports, clock: VirtualClock, weather: Weather, random: Random, *,
        deploys: bool,
    ) -> None:  # fmt: skip
        self._apps = apps
        self._ports = ports
        self._clock = clock
        self._weather = weather
        self._random = random
        self._idle: dict[Kind, list[Container]] = {"orchestrator": [], "worker": []}
        moment = weather.deploys_after
        if moment is None and deploys:
            moment = random.uniform(0, 30)
        self._deploys_at = None if moment is None else clock.now() + moment

    @property
    def code_version(self) -> str:
        """What is deployed now."""
        return "1" if self._deploys_at is None or self._clock.now() < self._deploys_at else "2"

    @property
    def app(self) -> App[Any]:
        """The app that is deployed now."""
        return self._apps[min(int(self.code_version), len(self._apps)) - 1]

    def take(self, kind: Kind) -> Container:
        """A container of this kind, warm if there is one."""
        idle = self._idle[kind]
        while idle:
            container = idle.pop()
            if container.code_version == self.code_version or self._old_code_may_run:
                return container
        ports = self.ports_of_a_machine()
        if kind == "worker":
            name = f"worker of code {self.code_version}"
            return Container(kind, self.code_version, RemoteWorker(self.app, ports, name=name, steps=InlineStepRunner))
        orchestrator = Orchestrator(
            self.app, ports, code_version=self.code_version, options=self._options(), steps=InlineStepRunner
        )
        return Container(kind, self.code_version, orchestrator)

    def give_back(self, container: Container) -> None:
        """It has answered."""
        self._idle[container.kind].append(container)

    def ports_of_a_machine(self) -> Ports:
        """The ports as a machine sees them whose clock is off."""
        skew = self._weather.skew
        if not skew:
            return self._ports
        return replace(self._ports, clock=SkewedClock(self._clock, self._random.uniform(-skew, skew)))

    @property
    def _old_code_may_run(self) -> bool:
        return self._deploys_at is not None and self._clock.now() < self._deploys_at + OLD_CODE_SECONDS

    def _options(self) -> EngineOptions:
        weather = self._weather
        return EngineOptions(
            parallel_runs=1, short_wait=weather.short_wait, reserve=2.0, lease_margin=2.0, watch=weather.watch,
            dead_turns=50, prune_from=weather.prune_from, fences_kept=weather.fences_kept,
        )  # fmt: skip
