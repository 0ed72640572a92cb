"""One seed: several orchestrators, maintenance and clients around one run, interleaved at every port call, in virtual time."""

from __future__ import annotations

import logging
from random import Random  # noqa: TID251 - the seed is the whole input
from typing import TYPE_CHECKING, Any, Final

from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers
from durable.engine.maintenance import Maintenance
from durable.engine.options import EngineOptions
from durable.engine.orchestrator import Delivery, Orchestrator
from durable.engine.steps import InlineStepRunner
from durable.errors import StoreUnavailable
from durable.model.envelope import Deliver, Start, Wake, from_body, to_body
from durable.model.run import Run, first_epoch
from durable.ports import Page, Ports
from durable.testing.interception import intercepted
from durable.testing.services import SeededIds
from durable.testing.simulation import workload
from durable.testing.simulation.activities import Activity, Outcome
from durable.testing.simulation.invariants import Violation, Watch, check_messages, check_send, check_wake_of_ended_run
from durable.testing.simulation.weather import FailedTurns, SimulatedClock, UnorderedRunQueue, weather_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from durable.adapters.memory import Received
    from durable.testing.simulation.baton import Actor, Stage

RUN_ID: Final = "run"
INVOCATION_SECONDS: Final = 20.0
MAX_EVENTS: Final = 6_000
MAX_ACTIVE: Final = 4
"""Invocations at once: what the event source's concurrency is for."""
MAX_MESSAGES: Final = 12
EXECUTIONS: Final = 8
"""Of step bodies in a healthy run of the workload; one of its steps fails once."""
PATIENCE: Final = 900.0
"""Virtual seconds after the last message in which a run must end, whatever went wrong."""


class Simulation:
    """Runs one seed to its end and checks the invariants on the way."""

    def __init__(
        self, seed: int, stage: Stage, *, store: type[MemoryStore] = MemoryStore, traced: bool = False
    ) -> None:
        self.random = Random(seed)
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
        self.watch = Watch(self.store, RUN_ID)
        self._maintenance = Maintenance(self.intercepted, code_version="1")
        self._failed = FailedTurns()
        self._idle: list[Orchestrator] = []
        self._active: list[Activity] = []
        self._running: Activity | None = None
        self._entered = 0
        self._next_sweep = self.start + 60
        self._quiet_since = self.start
        self._sent: list[str] = []
        self._send_at = sorted(self._moments_of_messages())

    def _moments_of_messages(self) -> Iterator[float]:
        """Some come in bursts."""
        moment = self.start
        for _ in range(self.weather.messages):
            moment += self.random.choice([0.0, self.random.uniform(0, 2), self.random.uniform(0, 30)])
            yield moment

    # The seed from start to end

    def run(self) -> Outcome:
        """Raises `Violation` where an invariant does not hold."""
        workload.effects.forget()
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
        epoch = first_epoch(self.start)
        workflow = workload.chain
        run = Run(
            id=RUN_ID, workflow=workflow.name, version=workflow.version, status="pending", created_at=self.start,
            epoch=epoch, born=epoch, clean_epoch=epoch, writer="client", due_at=self.start + 30,
        )  # fmt: skip
        self.store.create(run)
        if not self._goes_wrong(0.1):
            self.runs.send(Start(run_id=RUN_ID, id="start"))

    def _happen(self) -> Activity | None:
        """One event; the activity that goes on with it, if it is one's."""
        if self.random.random() < 0.3:
            self.clock.advance(self.random.uniform(0, self.weather.pace))
        self._hurry_messages()
        self._send_due_messages()
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
        if not self._active and not self._send_at and not due:
            self._everything_is_quiet()
        if self.clock.now() > self._quiet_since + PATIENCE:
            raise Violation(f"I2: nothing has woken the run for {PATIENCE:g} s: {self.watch}")
        if self.weather.faults:
            due.append(self._next_sweep)
        self.clock.advance_to(min([*due, *(one.resumes_at for one in self._active), *self._send_at]))

    # What comes in

    def _hurry_messages(self) -> None:
        """A message likes to come just before a turn is settled."""
        about_to_settle = any(one.actor.before == "store.settle" for one in self._active)
        if about_to_settle and self._send_at and self.random.random() < 0.3:
            self._send_at[0] = self.clock.now()

    def _send_due_messages(self) -> None:
        while self._send_at and self._send_at[0] <= self.clock.now():
            del self._send_at[0]
            self._quiet_since = self.clock.now()
            number = len(self._sent) + 1
            message = Deliver(run_id=RUN_ID, id=f"m{number}", name=workload.GO.name, body=str(number))
            self._sent.append(message.id)
            self._note(f"send {message.id}")
            for _ in range(2 if self.random.random() < 0.2 else 1):
                self.runs.enqueue(to_body(message), group=RUN_ID)
            if self.random.random() < 0.3:  # a wake too many does no harm, and makes invocations meet
                wake = Wake(run_id=RUN_ID, id=self.ids(), reason="simulated")
                self.timers.send(wake, delay=self.random.choice([0, 1, 2]))

    def _start_invocations(self) -> None:
        for source in (self.runs, self.timers):
            if len(self._active) < MAX_ACTIVE and self.random.random() < 0.4:
                self._receive(source)

    def _receive(self, source: MemoryRunQueue | MemoryTimers) -> None:
        received = source.receive(self.random.choice([1, 1, 10]))
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
            f"handle {[one.body[:40] for one in received]}", container, source, received,
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
            reserve=1.0,
            lease_margin=1.0,
            watch=self.weather.watch,
            dead_turns=50,
        )
        return Orchestrator(workload.app, self.intercepted, code_version="1", options=options, steps=InlineStepRunner)

    # What happens to an activity

    def _go_on(self, activity: Activity) -> Activity | None:
        if self._goes_wrong(0.04):
            self.outcome.kills += 1
            self._note(f"actor {activity.number}: killed before {activity.actor.before}")
            activity.actor.die()
            return activity
        if self._goes_wrong(0.15 if activity.actor.before == "store.put_entry" else 0.05):
            self.outcome.freezes += 1
            activity.waits_for_load = self.random.random() < 0.5
            activity.resumes_at = self.clock.now() + self.random.randint(30 if activity.waits_for_load else 5, 60)
            self._note(f"actor {activity.number}: frozen before {activity.actor.before}")
            return None
        return activity

    def _leave(self, activity: Activity) -> None:
        self._active.remove(activity)
        actor = activity.actor
        if actor.error is not None:
            if isinstance(actor.error, StoreUnavailable):  # only maintenance lets it out; it comes again in a minute
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
        if not self.weather.faults and run.due_at is not None:
            raise Violation(f"I2: the run is due at {run.due_at - self.start:g}, and no timer is set")
        if run.waiting_for and len(self._sent) < MAX_MESSAGES:
            self._send_at.append(self.clock.now())
        elif not self.weather.faults:
            raise Violation(f"I5: nothing can wake the run: {self.watch}")

    def _check_end(self) -> None:
        run, history = self.watch.run, self.watch.history()
        if run.status != "completed":
            raise Violation(f"I1: the run ended as {run.status}: {run.error}")
        check_messages(self.watch, self._sent, [message.body for message in self.runs.pending])
        for location in ("first", "second", "a-left", "z-right", "flaky", "last"):
            if location not in history or not workload.effects.executions[location]:
                raise Violation(f"I1: step {location} has no result, or a result without an execution")
        if workload.effects.executions["careful"] > 1:
            raise Violation("I1: an at-most-once step was executed twice")
        check_send(self.watch, self._delivered_to_other_run())
        if not self.weather.faults and workload.effects.executions.total() != EXECUTIONS:
            raise Violation(f"I1: a healthy run repeated a step: {workload.effects.executions}")
        check_wake_of_ended_run(workload.app, self.ports, RUN_ID)

    def _delivered_to_other_run(self) -> set[str]:
        queued = [from_body(message.body) for message in self.runs.pending]
        return {message.id for message in self.store.mailbox(workload.OTHER_RUN)} | {
            one.id for one in queued if one.run_id == workload.OTHER_RUN
        }
