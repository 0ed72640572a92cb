"""The machine around the engine: queues that deliver, functions that start, die and stand still, time that is skipped."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from durable.adapters.texts import with_texts
from durable.engine.maintenance import GRACE, Maintenance
from durable.engine.orchestrator import Delivery
from durable.lanes import alive, unaware
from durable.model.delivery import TaskDelivery
from durable.model.envelope import Deliver, Publish, from_body
from durable.model.lane_changes import neglected
from durable.model.task import task_from
from durable.testing.containers import Container, WorkerContainer
from durable.testing.faults import Faults, InvocationKilled
from durable.testing.steps import TestSteps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from durable.adapters.memory import Received
    from durable.app import App
    from durable.engine.options import EngineOptions
    from durable.engine.steps import StepRunner
    from durable.testing.faults import DeliveryFault
    from durable.testing.mocks import Mocks
    from durable.testing.services import Services, Source

C = TypeVar("C", Container, WorkerContainer)

INVOCATION_SECONDS: Final = 120.0
"""The orchestrator's timeout."""
WORKER_SECONDS: Final = 300.0
"""That of the function of remote steps."""
RETRY_SECONDS: Final = 5.0
"""How soon a message whose handling failed comes back."""
MAINTENANCE_SECONDS: Final = 60.0


class World:
    """One deployment. Single-threaded: whatever happens, happens inside `deliver`, in the order of virtual time."""

    def __init__(
        self,
        app: App,
        services: Services,
        *,
        options: EngineOptions,
        mocks: Mocks,
        new_runner: Callable[[], StepRunner],
    ) -> None:
        self.app = app
        self.services = services
        self.mocks = mocks
        self.faults = Faults(self.pass_time)
        self.deployments = 1
        self.repairs = 0
        """Runs that maintenance had to wake; a healthy world has none."""
        self.executions: Counter[tuple[str, str]] = Counter()
        """How often the body at a location of a run was begun, stand-ins included."""
        self.lose_wakes_of_killed = False
        """Whether what woke a killed invocation is lost with it; messages never are."""
        self.after_delivery: Callable[[], None] = _nothing
        self.ports = with_texts(services.ports, app.codec)
        """What clients and maintenance see."""
        self._options = options
        self._new_runner = new_runner
        self._warm: list[Container] = []
        self._warm_workers: list[WorkerContainer] = []
        self._swept_at = -math.inf
        self._swept_deployment = 1
        self._deployed_at = 0.0

    @property
    def code_version(self) -> str:
        """Names what is deployed; another one after each deployment."""
        return f"deployment-{self.deployments}"

    @property
    def sweep_is_due_after_deployment(self) -> bool:
        """Whether maintenance has yet to look at runs that older code left blocked."""
        return self._swept_deployment < self.deployments

    def deploy(self, app: App) -> None:
        """Replaces the code; containers of the old code take no new work."""
        self.app = app
        self.ports = with_texts(self.services.ports, app.codec)
        self.deployments += 1
        self._deployed_at = self.services.clock.now()
        self.restart()

    def restart(self) -> None:
        """Makes the next invocations start cold."""
        self._warm.clear()
        self._warm_workers.clear()

    def go_down(self, duration: float) -> None:
        """Passes time in which nothing is delivered and no maintenance runs."""
        self.faults.used = True
        self.services.clock.advance(duration)

    def deliver(self) -> bool:
        """Makes the next delivery that is due now and handles it; False if there is none.

        Workers work side by side: what ends at the same moment is told together.
        """
        self.services.timers.fire_schedules()
        for source in (self.services.steps, self.services.runs, self.services.timers):
            fault = self.faults.next_delivery() if self._has_something(source) else None
            received = source.receive(self._batch_of(source, fault))
            if received:
                self._hand_over(source, received, fault)
                self.after_delivery()
                return True
        return False

    def next_event_at(self) -> float | None:
        """When there is something to deliver or to maintain; None when nothing will ever happen by itself."""
        moments = (
            self.services.runs.next_visible_at(),
            self.services.timers.next_visible_at(),
            self.services.timers.next_schedule_at(),
            self.services.steps.next_visible_at(),
            self._next_sweep_at(),
        )
        return _earliest(*moments)

    def settle_down(self) -> None:
        """Delivers whatever is due now, and what comes of it."""
        while self.deliver():
            pass

    def skip_to(self, moment: float) -> None:
        """Moves time on to the moment of the next event and lets it happen."""
        self.services.clock.advance_to(moment)
        sweep_at = _earliest(self._next_sweep_at(), self._next_expiry_at())
        self.settle_down()
        if sweep_at is not None and sweep_at <= self.services.clock.now():
            self._sweep()
            self.settle_down()

    def pass_time(self, duration: float) -> None:
        """Moves time on by so much, with everything that happens meanwhile."""
        end = self.services.clock.now() + duration
        self.settle_down()
        while (moment := _earliest(self.next_event_at(), self._next_expiry_at())) is not None and moment <= end:
            self.skip_to(moment)
        self.services.clock.advance_to(end)

    def _batch_of(self, source: Source, fault: DeliveryFault | None) -> int:
        """How many messages an invocation gets: all that are due, but each remote step has one to itself."""
        if fault is not None:
            return 10 if fault.kind == "reorder" else 1
        return 1 if source is self.services.steps else 10

    def _run_of(self, source: Source, body: str) -> str:
        return task_from(body).run_id if source is self.services.steps else from_body(body).run_id

    def _has_something(self, source: Source) -> bool:
        moment = source.next_visible_at()
        return moment is not None and moment <= self.services.clock.now()

    def _hand_over(self, source: Source, received: Sequence[Received], fault: DeliveryFault | None) -> None:
        match fault.kind if fault else None:
            case "delay":
                source.change_visibility(received[0].receipt, fault.delay if fault else 0.0)
            case "drop":
                source.acknowledge(received[0].receipt)
            case "duplicate":
                self._invoke(source, received)
                source.change_visibility(received[0].receipt, 0.0)
            case "reorder":
                for part in self._reordered(source, received, fault):
                    self._answer(source, part, self._invoke(source, part))
            case None:
                self._answer(source, received, self._invoke(source, received))

    def _reordered(
        self, source: Source, received: Sequence[Received], fault: DeliveryFault | None
    ) -> Sequence[Sequence[Received]]:
        """What comes first and what then; FIFO queues keep the order within a run."""
        run_id = self._run_of(source, received[0].body)
        in_order = source is self.services.runs
        late = [
            one for one in received if one is received[0] or (in_order and self._run_of(source, one.body) == run_id)
        ]
        early = [one for one in received if one not in late]
        if not early and fault is not None:
            self.faults.not_yet(fault)
        return [part for part in (early, late) if part]

    def _answer(self, source: Source, received: Sequence[Received], failed: Sequence[str] | None) -> None:
        for delivery in received:
            if failed is None:
                if self.lose_wakes_of_killed and self._is_wake(source, delivery.body):
                    source.acknowledge(delivery.receipt)
            elif delivery.receipt in failed:
                source.change_visibility(delivery.receipt, RETRY_SECONDS)
            else:
                source.acknowledge(delivery.receipt)

    def _is_wake(self, source: Source, body: str) -> bool:
        return source is not self.services.steps and not isinstance(from_body(body), Deliver | Publish)

    def _invoke(self, source: Source, received: Sequence[Received]) -> Sequence[str] | None:
        """Ids of the deliveries that failed; None when the invocation died and answered nothing."""
        if source is self.services.steps:
            return self._perform(received)
        container = self._warm.pop() if self._warm else self._start(Container)
        deliveries = [
            Delivery(id=one.receipt, body=one.body, arrived_at=one.sent_at, sequence=one.sequence) for one in received
        ]
        try:
            failed = container.process(deliveries, remaining=INVOCATION_SECONDS)
        except InvocationKilled:
            self.faults.used = True
            return None
        if container.code_version == self.code_version:
            self._warm.append(container)
        return failed

    def _perform(self, received: Sequence[Received]) -> Sequence[str] | None:
        """The same, of tasks of remote steps."""
        container = self._warm_workers.pop() if self._warm_workers else self._start(WorkerContainer)
        tasks = [TaskDelivery(id=one.receipt, body=one.body, receive_count=one.receive_count) for one in received]
        try:
            failed = container.process(tasks, remaining=WORKER_SECONDS)
        except InvocationKilled:
            self.faults.used = True
            return None
        if container.code_version == self.code_version:
            self._warm_workers.append(container)
        return failed

    def _start(self, kind: type[C]) -> C:
        return kind(
            self.app,
            self.services.ports,
            code_version=self.code_version,
            options=self._options,
            steps=lambda: TestSteps(self._new_runner(), self.mocks, self.services.clock, self.executions),
            perform=self.faults.perform,
        )

    def _next_sweep_at(self) -> float | None:
        """The minute at which maintenance next has something to do."""
        store = self.services.store
        earliest = self._swept_at + MAINTENANCE_SECONDS
        if self.sweep_is_due_after_deployment:
            return max(_minute_after(self._deployed_at), earliest)
        overdue = store.due_runs(before=math.inf, limit=1)
        run = store.get(overdue[0]) if overdue else None
        moments = [*self._neglected_lanes()]
        if run is not None and run.due_at is not None:
            moments.append(run.due_at + GRACE)
        return max(_minute_after(min(moments)), earliest) if moments else None

    def _next_expiry_at(self) -> float | None:
        """The minute at which maintenance next deletes a run: nothing that anybody waits for."""
        expired = self.services.store.expired_runs(before=math.inf, limit=1)
        run = self.services.store.get(expired[0]) if expired else None
        if run is None or run.due_at is None:
            return None
        return max(_minute_after(run.due_at), self._swept_at + MAINTENANCE_SECONDS)

    def _neglected_lanes(self) -> Iterator[float]:
        """When lanes are due that have something to do then: not those whose holders are only to be asked if they live."""
        store = self.services.store
        for name in store.due_lanes(before=math.inf, limit=1000):
            state = store.read_lane(name, tickets=0)
            if state is None or state.lane.due_at is None:
                continue
            ports, holders = self.ports, state.lane.holders
            if neglected(state.lane) or any(not alive(ports, name, it) or unaware(ports, it) for it in holders):
                yield state.lane.due_at

    def _sweep(self) -> None:
        self._swept_at = self.services.clock.now()
        self._swept_deployment = self.deployments
        swept = Maintenance(with_texts(self.services.ports), code_version=self.code_version).sweep()
        self.repairs += swept.woken


def _minute_after(moment: float) -> float:
    return (math.floor(moment / MAINTENANCE_SECONDS) + 1) * MAINTENANCE_SECONDS


def _earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _nothing() -> None:
    pass
