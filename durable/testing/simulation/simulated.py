"""One seed: several orchestrators, maintenance and clients around one run, interleaved at every port call, in virtual time."""

from __future__ import annotations

import logging
from random import Random  # noqa: TID251 - the seed is the whole input
from typing import TYPE_CHECKING, Any, Final

from durable import codec
from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers
from durable.engine.maintenance import Maintenance
from durable.engine.options import EngineOptions
from durable.engine.orchestrator import Delivery, Orchestrator
from durable.engine.steps import InlineStepRunner
from durable.errors import StoreUnavailable
from durable.model.envelope import Deliver, Start, from_body
from durable.model.run import pending_run
from durable.ports import Page, Ports
from durable.testing.interception import intercepted
from durable.testing.services import SeededIds
from durable.testing.simulation.activities import Activity, Outcome
from durable.testing.simulation.aftermath import check_wake_of_ended_run
from durable.testing.simulation.callers import Callers
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.watch import Watch
from durable.testing.simulation.weather import FailedTurns, SimulatedClock, UnorderedRunQueue, weather_of
from durable.testing.simulation.workloads import WORKLOADS
from durable.testing.simulation.workloads.effects import RUN_ID, app, effects
from durable.testing.simulation.workloads.workload import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.adapters.memory import Received
    from durable.testing.simulation.baton import Actor, Stage
    from durable.testing.simulation.workloads import Workload

INVOCATION_SECONDS: Final = 20.0
MAX_EVENTS: Final = 12_000
MAX_ACTIVE: Final = 4
"""Invocations at once: what the event source's concurrency is for."""
PATIENCE: Final = 2_500.0
"""Virtual seconds after the last message in which a run must end, whatever went wrong."""
SETTLES: Final = frozenset({"store.settle", "store.continue_as_new"})
RISKY: Final = SETTLES | {
    "store.put_entry", "store.record_fences", "store.record_floor", "store.bury", "store.delete_messages",
    "store.delete_entries", "store.clear_carries", "store.put_message", "runs.send",
}  # fmt: skip
"""Calls between which an invocation is worth interrupting."""


class Simulation:
    """Runs one seed to its end and checks the invariants on the way."""

    def __init__(
        self, seed: int, stage: Stage, *, workload: Workload | None = None, store: type[MemoryStore] = MemoryStore,
        traced: bool = False,
    ) -> None:  # fmt: skip
        self.random = Random(seed)
        chosen = self.random.choice(list(WORKLOADS.values()))
        self.workload = workload or chosen
        self.weather = weather_of(self.random)
        self.outcome = Outcome()
        self._traced = traced
        self._stage = stage
        self._budget = self.weather.faults
        self.clock = SimulatedClock()
        self.clock.on_sleep = self._sleep
        self.store = store(page_size=self.weather.page_size)
        self.ids = SeededIds(self.clock, seed)
        queue = MemoryRunQueue if self.weather.ordered else UnorderedRunQueue
        self.runs = queue(self.clock, visibility_timeout=self.weather.visibility, max_receives=1000)
        self.timers = MemoryTimers(
            self.clock, self.ids, self.runs, visibility_timeout=self.weather.visibility, max_receives=1000
        )
        self.ports = Ports(store=self.store, runs=self.runs, timers=self.timers, clock=self.clock, new_id=self.ids)
        self.start = self.clock.now()
        self.intercepted = intercepted(self.ports, self._port_call)
        bound = self.workload.stored
        self.watch = Watch(self.store, RUN_ID, stored=bound and bound(self.weather.prune_from))
        flood = self.weather.roomy and self.workload.flood > 0
        self._batches = [10] if flood else [1, 1, 10]
        self._callers = Callers(self.workload, self.random, self.ports, self.runs, self._note, flood=flood)
        self._maintenance = Maintenance(self.intercepted, code_version="1")
        self._failed = FailedTurns()
        self._idle: list[Orchestrator] = []
        self._active: list[Activity] = []
        self._running: Activity | None = None
        self._entered = 0
        self._next_sweep = self.start + 60
        self._quiet_since = self.start

    # The seed from start to end

    def run(self) -> Outcome:
        """Raises `Violation` where an invariant does not hold."""
        effects.forget()
        log = logging.getLogger("durable")
        log.addHandler(self._failed)
        propagate, log.propagate = log.propagate, False
        self._start_run()
        try:
            self._stage.play(self._next_actor)
            self._check_end()
        finally:
            log.removeHandler(self._failed)
            log.propagate = propagate
            for activity in self._active:
                self._running = activity
                self._stage.end(activity.actor)
        return self.outcome

    def _next_actor(self) -> Actor | None:
        """Lets things happen until somebody goes on; None at the end of the seed."""
        if self._running is not None and self._running.actor.finished:
            self._leave(self._running)
        self._running = None
        if self._failed.found:
            raise self._failed.found[0]
        while self._active or not self.watch.run.ended:
            self.outcome.events += 1
            if self.outcome.events > MAX_EVENTS:
                raise Violation("I2: the run does not come to an end")
            self._running = self._happen()
            if self._running is not None:
                return self._running.actor
        return None

    def _start_run(self) -> None:
        """What a client does; if its invocation died between the two, maintenance would find the run."""
        workflow = self.workload.workflow
        text = codec.encode(self.workload.input(self.random), workflow.input_type) if workflow.takes_input else None
        run, _ = pending_run(
            id=RUN_ID, workflow=workflow.name, version=workflow.version, input=text, input_digest="", writer="client",
            now=self.start,
        )  # fmt: skip
        self.store.create(run)
        if not self._goes_wrong(0.1):
            self.runs.send(Start(run_id=RUN_ID, id="start"))

    def _happen(self) -> Activity | None:
        """One event; the activity that goes on with it, if it is one's."""
        if self.random.random() < 0.3:
            self.clock.advance(self.random.uniform(0, self.weather.pace * self.workload.pace))
        self._call()
        self.timers.fire_schedules()
        self._start_invocations()
        self._start_maintenance()
        ready = [one for one in self._active if one.resumes_at <= self.clock.now()]
        if ready:
            return self._go_on(self._choose(ready))
        self._pass_time()
        return None

    def _choose(self, ready: Sequence[Activity]) -> Activity:
        zombies = [one for one in ready if one.waits_for_load]
        return self.random.choice(zombies if zombies and self.random.random() < 0.7 else ready)

    def _pass_time(self) -> None:
        """Nothing runs now: on to the next moment at which something can."""
        sources = (self.runs.next_visible_at(), self.timers.next_visible_at(), self.timers.next_schedule_at())
        due = [moment for moment in sources if moment is not None]
        if not self._active and not self._callers.moments and not due:
            self._everything_is_quiet()
        if self.clock.now() > self._quiet_since + PATIENCE:
            raise Violation(f"I2: nothing has woken the run for {PATIENCE:g} s: {self.watch}")
        if self.weather.faults:
            due.append(self._next_sweep)
        self.clock.advance_to(min([*due, *(one.resumes_at for one in self._active), *self._callers.moments]))

    # What begins

    def _call(self) -> None:
        """Callers do what they have planned; they like to come just before a turn is settled."""
        if any(one.actor.before in SETTLES for one in self._active) and self.random.random() < 0.3:
            self._callers.hurry()
        if self._callers.send_due():
            self._quiet_since = self.clock.now()
        cancel = self._callers.cancellation(self.intercepted)
        if cancel is not None:
            self._quiet_since = self.clock.now()
            self._enter(cancel, "cancel")

    def _start_invocations(self) -> None:
        for source in (self.runs, self.timers):
            if len(self._active) < MAX_ACTIVE and self.random.random() < 0.4:
                self._receive(source)

    def _receive(self, source: MemoryRunQueue | MemoryTimers) -> None:
        received = source.receive(self.random.choice(self._batches))
        if not received:
            return
        if source is self.timers and self._goes_wrong(0.1):
            self._note("a timer is lost")
            for one in received:
                source.acknowledge(one.receipt)
            return
        container = self._idle.pop() if self._idle else self._new_container()
        deliveries = [
            Delivery(id=one.receipt, body=one.body, arrived_at=one.sent_at, sequence=one.sequence) for one in received
        ]
        self._enter(
            lambda: container.process(deliveries, remaining=INVOCATION_SECONDS),
            f"handle {[one.body[:60] for one in received]}", container, source, received,
        )  # fmt: skip

    def _start_maintenance(self) -> None:
        if not self.weather.faults or self.clock.now() < self._next_sweep:
            return
        self._next_sweep = self.clock.now() + 60
        self._enter(lambda: self._maintenance.sweep(limit=10), "maintain")

    def _enter(
        self, work: Callable[[], Any], what: str, container: Orchestrator | None = None,
        source: MemoryRunQueue | MemoryTimers | None = None, received: Sequence[Received] = (),
    ) -> None:  # fmt: skip
        actor = self._stage.enter(work)
        self._entered += 1
        self._note(f"actor {self._entered}: {what}")
        self._active.append(Activity(self._entered, actor, container, source, received))

    def _new_container(self) -> Orchestrator:
        options = EngineOptions(
            parallel_runs=1,
            short_wait=self.weather.short_wait,
            reserve=2.0,
            lease_margin=2.0,
            watch=self.weather.watch,
            dead_turns=50,
            prune_from=self.weather.prune_from,
            fences_kept=self.weather.fences_kept,
        )
        return Orchestrator(app, self.intercepted, code_version="1", options=options, steps=InlineStepRunner)

    # What happens to an activity

    def _go_on(self, activity: Activity) -> Activity | None:
        risky = activity.actor.before in RISKY
        if self._goes_wrong(0.05 if risky else 0.03) or self._client_dies(activity):
            self.outcome.kills += 1
            self._note(f"actor {activity.number}: killed before {activity.actor.before}")
            activity.actor.die()
            return activity
        if self._goes_wrong(0.15 if risky else 0.04):
            self.outcome.freezes += 1
            activity.waits_for_load = self.random.random() < 0.5
            activity.resumes_at = self.clock.now() + self.random.randint(30 if activity.waits_for_load else 5, 60)
            self._note(f"actor {activity.number}: frozen before {activity.actor.before}")
            return None
        return activity

    def _client_dies(self, activity: Activity) -> bool:
        """Between what it asks for and the wake: rare, and worth more than its share of what goes wrong."""
        asks = activity.container is None and activity.actor.before == "runs.send"
        return asks and self.weather.faults > 0 and self.random.random() < 0.3

    def _leave(self, activity: Activity) -> None:
        self._active.remove(activity)
        actor = activity.actor
        if actor.error is not None:
            if isinstance(actor.error, StoreUnavailable):  # maintenance and clients let it out, and come again
                return
            raise actor.error
        if activity.source is None or activity.container is None:
            return
        if actor.killed or self._goes_wrong(0.02):
            self._lose_wakes(activity.source, activity.received)
            return
        self._note(f"actor {activity.number}: answers {actor.answer}")
        self._idle.append(activity.container)
        for one in activity.received:
            if one.receipt in actor.answer:
                activity.source.change_visibility(one.receipt, 1.0)
            else:
                activity.source.acknowledge(one.receipt)

    def _lose_wakes(self, source: MemoryRunQueue | MemoryTimers, received: Sequence[Received]) -> None:
        """An invocation died: the queue delivers again, or gives up what was a mere wake; messages are never lost."""
        if not self._goes_wrong(0.3):
            return
        self._note("its wakes are lost")
        for one in received:
            if not isinstance(from_body(one.body), Deliver):
                source.acknowledge(one.receipt)

    def _port_call(self, name: str, perform: Callable[[], Any]) -> Any:
        activity = self._running
        assert activity is not None
        activity.actor.pause(name)
        self.outcome.calls += 1
        refused = self._goes_wrong(0.01)
        if refused and self.random.random() < 0.5:
            self._note(f"actor {activity.number}: {name} is refused")
            raise StoreUnavailable(name)
        answer = perform()
        self._note(f"actor {activity.number}: {name} -> {answer}")
        self.watch.after_call(name)
        if isinstance(answer, Page) and answer.cursor is not None:
            self._wake_zombies()
        if refused:
            raise StoreUnavailable(name)
        return answer

    def _wake_zombies(self) -> None:
        for activity in self._active:
            if activity.waits_for_load and activity is not self._running:
                activity.resumes_at = self.clock.now()

    def _sleep(self, seconds: float) -> None:
        activity = self._running
        assert activity is not None
        activity.resumes_at = self.clock.now() + seconds
        activity.actor.pause("clock.sleep")

    def _goes_wrong(self, chance: float) -> bool:
        if self._budget == 0 or self.random.random() >= chance:
            return False
        self._budget -= 1
        return True

    def _note(self, line: str) -> None:
        if self._traced:
            self.outcome.trace.append(f"{self.clock.now() - self.start:8.2f}  {line}")

    # What must hold when all is quiet, and at the end

    def _everything_is_quiet(self) -> None:
        """No queue, timer or invocation is left, so whatever the run waits for must come from outside."""
        run = self.watch.run
        if run.due_at is None and (unread := [c for c in self.watch.unread() if c in run.waiting_for]):
            raise Violation(f"I2: the run sleeps and does not read {unread}")
        if run.due_at is None and run.cancel_requested:
            raise Violation("I2: the run sleeps, and somebody has cancelled it")
        if not self.weather.faults and run.due_at is not None:
            raise Violation(f"I2: the run is due at {run.due_at - self.start:g}, and no timer is set")
        if run.waiting_for and self._callers.can_send:
            self._callers.send_one_now()
        elif not self.weather.faults:
            raise Violation(f"I5: nothing can wake the run: {self.watch}")

    def _check_end(self) -> None:
        fine = self.weather.faults == 0
        queued = [message.body for message in self.runs.pending]
        callers = self._callers
        self.workload.check(Ending(watch=self.watch, fine=fine, sent=callers.sent, queued=queued, asked=callers.asked))
        if fine and (repeated := self.workload.repeated()):
            raise Violation(f"I1: a healthy run repeated steps: {repeated}")
        check_wake_of_ended_run(app, self.ports, self.watch.run.id)
