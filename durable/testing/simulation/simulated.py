"""One seed: orchestrators, workers, maintenance and clients around some runs, interleaved at every port call, in virtual time."""

from __future__ import annotations

import logging
from random import Random  # noqa: TID251 - the seed is the whole input
from typing import TYPE_CHECKING, Any, Final

from durable import codec
from durable.adapters.memory import MemoryStore
from durable.adapters.signing import TextSigning
from durable.engine.maintenance import Maintenance
from durable.errors import StoreUnavailable
from durable.model.envelope import Start
from durable.model.run import pending_run
from durable.ports import Page, Ports
from durable.testing.services import SIGNED_WITH, SeededIds
from durable.testing.simulation.activities import Activity, Outcome
from durable.testing.simulation.aftermath import check_wake_of_ended_run
from durable.testing.simulation.callers import Callers
from durable.testing.simulation.fleet import Fleet
from durable.testing.simulation.luck import Luck
from durable.testing.simulation.queues import Queues, is_mere_wake
from durable.testing.simulation.quiet import check_quiet, maintenance_is_needed
from durable.testing.simulation.script import Script
from durable.testing.simulation.seams import told_of_calls
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.watch import Watch
from durable.testing.simulation.weather import FailedTurns, SimulatedClock, weather_of
from durable.testing.simulation.workloads import WORKLOADS, Workload
from durable.testing.simulation.workloads.effects import RUN_ID, effects
from durable.testing.simulation.workloads.workload import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.adapters.memory import Received
    from durable.adapters.memory.queues import MemoryQueue
    from durable.definitions import Workflow
    from durable.testing.simulation.baton import Actor, Stage
    from durable.testing.simulation.fleet import Container
    from durable.testing.simulation.outside import Outside
    from durable.testing.simulation.seams import PortCall

MAX_EVENTS: Final = 20_000
MAX_ACTIVE: Final = 4
"""Invocations at once: what the event source's concurrency is for."""
PATIENCE: Final = 2_500.0
"""Virtual seconds after the last message in which all must be over, whatever went wrong."""
SETTLES: Final = frozenset({"store.settle", "store.continue_as_new"})
RISKY: Final = SETTLES | {
    "store.put_entry", "store.record_fences", "store.record_floor", "store.bury", "store.delete_messages",
    "store.delete_entries", "store.clear_carries", "store.put_message", "store.write_lane", "store.close_task",
    "store.clear_outbox", "store.create", "store.put_subscription", "store.take_event", "runs.send", "steps.send",
}  # fmt: skip
"""Calls between which an invocation is worth interrupting."""
CONTENDED: Final = frozenset({"store.write_lane", "store.continue_as_new"})
"""Transactions: DynamoDB refuses one of two that meet."""


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
        self._luck = Luck(self.random, self.weather.faults, self.workload.rate)
        self.clock = SimulatedClock()
        self.clock.on_sleep = self._sleep
        self.store = store(page_size=self.weather.page_size)
        self.ids = SeededIds(self.clock, seed)
        self.queues = Queues(self.clock, self.ids, self.weather, self.random, self._luck, self._note)
        self.ports = Ports(
            store=self.store, runs=self.queues.runs, timers=self.queues.timers, clock=self.clock, new_id=self.ids,
            steps=self.queues.steps, signing=TextSigning(SIGNED_WITH),
        )  # fmt: skip
        self.start = self.clock.now()
        bound = self.workload.stored
        main = None if self.workload.workflow is None else RUN_ID
        self.watch = Watch(self.store, main, stored=bound and bound(self.weather.prune_from))
        intercepted = told_of_calls(self.ports, self._port_call)
        self._fleet = Fleet(
            self.workload.apps, intercepted, self.clock, self.weather, self.random, deploys=self.workload.deploys
        )
        self._maintained = self.weather.faults > 0 or self.workload.deploys
        flood = self.weather.roomy and self.workload.flood > 0
        self._batches = [10] if flood else [1, 1, 10]
        self._outside = self._begin(flood=flood)
        self._failed = FailedTurns()
        self._active: list[Activity] = []
        self._running: Activity | None = None
        self._entered = 0
        self._next_sweep = self.start + 60
        self._quiet_since = self.start
        self._is_quiet = False

    def _begin(self, *, flood: bool) -> Outside:
        """Who will do what from outside."""
        if self.workload.plan is None:
            return Callers(self.workload, self.random, self.ports, self.queues.runs, self._note, flood=flood)
        plan = self.workload.plan(self.random)
        return Script(lambda: self._fleet.app, self.clock.now, plan.acts, plan.last)

    # The seed from start to end

    def run(self) -> Outcome:
        """Raises `Violation` where an invariant does not hold."""
        effects.forget(self.clock.sleep, self.clock.now)
        effects.notes["watch"] = self.watch
        log = logging.getLogger("durable")
        log.addHandler(self._failed)
        propagate, log.propagate = log.propagate, False
        if self.workload.workflow is not None:
            self._start_run(self.workload.workflow)
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
        while self._active or not (self._is_quiet or self._outside.is_over(self.watch)):
            self.outcome.events += 1
            if self.outcome.events > MAX_EVENTS:
                raise Violation(f"I2: there is no end to it: {self.watch}")
            self._running = self._happen()
            if self._running is not None:
                return self._running.actor
        return None

    def _start_run(self, workflow: Workflow[Any, Any]) -> None:
        """What a client does; if its invocation died between the two, maintenance would find the run."""
        text = codec.encode(self.workload.input(self.random), workflow.input_type) if workflow.takes_input else None
        run, stored = pending_run(
            id=RUN_ID, workflow=workflow.name, version=workflow.version, input=text, input_digest="", writer="client",
            now=self.start,
        )  # fmt: skip
        self.store.create(run, input=stored)
        self.watch.notice()
        if not self._luck.fails(0.1):
            self.queues.runs.send(Start(run_id=RUN_ID, id="start"))

    def _happen(self) -> Activity | None:
        """One event; the activity that goes on with it, if it is one's."""
        if self.random.random() < 0.3:
            self.clock.advance(self.random.uniform(0, self.weather.pace * self.workload.pace))
        self._call()
        self.queues.timers.fire_schedules()
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
        due = [*self.queues.moments, *(one.resumes_at for one in self._active), *self._outside.moments]
        if not due:
            self._everything_is_quiet()
            due = [*self._outside.moments]
        if self.clock.now() > self._quiet_since + PATIENCE:
            raise Violation(f"I2: nothing has happened for {PATIENCE:g} s that would end this: {self.watch}")
        if self._maintained and not self._is_quiet:
            due.append(self._next_sweep)
        self.clock.advance_to(min(due, default=0.0))

    # What begins

    def _call(self) -> None:
        """Clients do what they have planned; they like to come just before a turn is settled."""
        if any(one.actor.before in SETTLES for one in self._active) and self.random.random() < 0.3:
            self._outside.hurry()
        for what, work in self._outside.begin_due():
            ports = self._fleet.ports_of_a_machine()
            self._enter(lambda work=work, ports=ports: work(ports), what)
        if self._outside.has_acted:
            self._quiet_since = self.clock.now()

    def _start_invocations(self) -> None:
        for source in (self.queues.runs, self.queues.timers, self.queues.steps):
            if len(self._active) < MAX_ACTIVE and self.random.random() < 0.4:
                self._receive(source)

    def _receive(self, source: MemoryQueue) -> None:
        for_workers = source is self.queues.steps
        received = self.queues.receive(source, 1 if for_workers else self.random.choice(self._batches))
        if not received:
            return
        container = self._fleet.take("worker" if for_workers else "orchestrator")
        what = f"code {container.code_version} handles {[one.body[:60] for one in received]}"
        self._enter(lambda: container.process(received), what, container, source, received)

    def _start_maintenance(self) -> None:
        if not self._maintained or self.clock.now() < self._next_sweep:
            return
        self._next_sweep = self.clock.now() + 60
        maintenance = Maintenance(self._fleet.ports_of_a_machine(), code_version=self._fleet.code_version)
        self._enter(lambda: maintenance.sweep(limit=10), "maintain")

    def _enter(
        self, work: Callable[[], Any], what: str, container: Container | None = None,
        source: MemoryQueue | None = None, received: Sequence[Received] = (),
    ) -> None:  # fmt: skip
        actor = self._stage.enter(work)
        self._entered += 1
        self._note(f"actor {self._entered}: {what}")
        self._active.append(Activity(self._entered, actor, container, source, received))

    def _go_on(self, activity: Activity) -> Activity | None:
        risky = activity.actor.before in RISKY
        if self._luck.fails(0.05 if risky else 0.03) or self._client_dies(activity):
            self.outcome.kills += 1
            self._note(f"actor {activity.number}: killed before {activity.actor.before}")
            activity.actor.die()
            return activity
        if self._luck.fails(0.15 if risky else 0.04):
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
        if actor.killed or self._luck.fails(0.02):
            self._lose_wakes(activity.source, activity.received)
            return
        self._note(f"actor {activity.number}: answers {actor.answer}")
        self._fleet.give_back(activity.container)
        for one in activity.received:
            if one.receipt in actor.answer:
                activity.source.change_visibility(one.receipt, 1.0)
            else:
                activity.source.acknowledge(one.receipt)

    def _lose_wakes(self, source: MemoryQueue, received: Sequence[Received]) -> None:
        """An invocation died: the queue delivers again, or gives up what was a mere wake; messages are never lost."""
        if source is self.queues.steps or not self._luck.fails(0.3):
            return
        self._note("its wakes are lost")
        for one in received:
            if is_mere_wake(one.body):
                source.acknowledge(one.receipt)

    def _port_call(self, call: PortCall) -> Any:
        activity = self._running
        assert activity is not None
        activity.actor.pause(call.name)
        self.outcome.calls += 1
        refused = self._luck.fails(0.05 if call.name in CONTENDED else 0.01)
        if refused and self.random.random() < 0.5:
            self._note(f"actor {activity.number}: {call.name} is refused")
            raise StoreUnavailable(call.name)
        if self._luck.fails(0.01):  # the reply to the first try was lost, and the client library has tried again
            self._note(f"actor {activity.number}: {call.name} twice")
            self._perform(activity, call)
        answer = self._perform(activity, call)
        if isinstance(answer, Page) and answer.cursor is not None:
            self._wake_zombies()
        if refused:
            raise StoreUnavailable(call.name)
        return answer

    def _perform(self, activity: Activity, call: PortCall) -> Any:
        answer = call.perform()
        if self._traced:
            self._note(f"actor {activity.number}: {call.name} {call.run_id or ''} -> {answer}")
        self.watch.after_call(call)
        self.workload.look(self.watch, call)
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

    def _note(self, line: str) -> None:
        if self._traced:
            self.outcome.trace.append(f"{self.clock.now() - self.start:8.2f}  {line}")

    # What must hold when all is quiet, and at the end

    def _everything_is_quiet(self) -> None:
        """Maintenance may still have something to do; without faults it must not be needed."""
        fine = self.weather.faults == 0
        check_quiet(self.watch, fine=fine)
        soon = self.clock.now() + PATIENCE
        if self._maintained and maintenance_is_needed(self.store, self._fleet.code_version, soon):
            return
        if self._outside.when_quiet(self.watch):
            return
        if self.workload.plan is None:
            raise Violation(f"I5: nothing can wake the run: {self.watch}")
        self._is_quiet = True

    def _check_end(self) -> None:
        fine = self.weather.faults == 0
        queued = [message.body for message in self.queues.runs.pending]
        if isinstance(self._outside, Callers):
            sent, asked = self._outside.sent, self._outside.asked
            self.workload.check(Ending(watch=self.watch, fine=fine, sent=sent, queued=queued, asked=asked))
            check_wake_of_ended_run(self.workload.apps[0], self.ports, self.watch.run.id)
        else:
            self.workload.check(Ending(watch=self.watch, fine=fine))
        if fine and not self.weather.unruly and (repeated := self.workload.repeated()):
            raise Violation(f"I1: a healthy run repeated steps: {repeated}")
