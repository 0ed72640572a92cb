"""Thousands of runs at once, on the in-memory ports in virtual time: what they cost, how long wakes wait, and that nothing is lost.

Every port call takes a few virtual milliseconds, in which others go on; at most so many orchestrators and workers run at a
time, as a function's concurrency allows. One seed gives one sequence of events, so the counts compare between commits; only
`real_seconds` depends on the machine. Prints one JSON line; exits with 1 where something was lost.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import sys
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, Final

from durable import App, Context, Signal, step_context
from durable.client import Client
from durable.engine.options import EngineOptions
from durable.engine.orchestrator import Delivery, Orchestrator
from durable.engine.steps import InlineStepRunner
from durable.engine.worker import RemoteWorker
from durable.errors import Fenced
from durable.model.delivery import TaskDelivery
from durable.model.envelope import Deliver, TimerFired, from_body
from durable.ports import Acquired, Held, WakesMoved
from durable.testing.interception import intercepted
from durable.testing.services import in_memory
from durable.testing.simulation.baton import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.adapters.memory import Received
    from durable.testing.simulation.baton import Actor

app = App("load")
GO = Signal("go", int)
INVOCATION_SECONDS: Final = {"orchestrator": 60.0, "worker": 900.0}
BATCH: Final = 10
LATENCY: Final = {"store": (0.003, 0.010), "runs": (0.005, 0.020), "timers": (0.005, 0.030), "steps": (0.005, 0.020)}
"""Seconds of a call of each port: about what DynamoDB and SQS take within a region."""
CALL_EVERY: Final = 10
"""One parent in so many calls a remote step too."""


def price(n: int) -> int:
    """A step."""
    return n * 3


@app.remote_step(queue="labels")
def label(n: int) -> str:
    """A remote step."""
    return f"label {n} of {step_context().run_id}"


@app.workflow
async def parcel(ctx: Context, n: int) -> int:
    """A child: two steps and a nap."""
    cost = await ctx.step(price, n)
    await ctx.sleep(20)
    return await ctx.step("again", price, cost)


@app.workflow
async def order(ctx: Context, n: int) -> list[int]:
    """A parent: steps, a sleep, a message, a child, some with a remote step."""
    first = await ctx.step(price, n)
    await ctx.sleep(30)
    heard = await ctx.wait_for_signal(GO)
    child = await ctx.child(parcel, n)
    named = len(await ctx.call(label, n)) if n % CALL_EVERY == 0 else 0
    last = await ctx.step("last", price, heard)
    return [first, heard, child, int(named > 0), last]


def expected(n: int) -> list[int]:
    """What the order with this number returns."""
    return [3 * n, n + 1, 9 * n, int(n % CALL_EVERY == 0), 3 * (n + 1)]


class Load:
    """One seed: clients start and message runs; orchestrators and workers handle what the queues hold."""

    def __init__(self, *, runs: int, orchestrators: int, workers: int, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - the seed is the whole input
        self.services = in_memory(seed=seed)
        self._clock = self.services.clock
        self._ports = intercepted(self.services.ports, self._port_call)
        self._client = Client(app, self.services.ports)
        self._idle = {
            "orchestrator": [self._orchestrator() for _ in range(orchestrators)],
            "worker": [RemoteWorker(app, self._ports, steps=InlineStepRunner) for _ in range(workers)],
        }
        self._stage = Stage()
        self._turn: Actor | None = None
        self._events: list[tuple[float, int, Actor | Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._ends: dict[int, Callable[[], None]] = {}
        self.calls: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.latencies: list[float] = []
        self._arrivals: dict[str, float] = {}
        self.ids = [f"order-{n}" for n in range(runs)]
        start = self._clock.now()
        for n, run_id in enumerate(self.ids):
            self._at(start + self._random.uniform(0, 10), lambda n=n, run_id=run_id: self._begin(n, run_id))
            self._at(start + self._random.uniform(5, 90), lambda n=n, run_id=run_id: self._send(n, run_id))

    def play(self) -> None:
        """Until nothing is left to happen."""
        self._stage.play(self._next)

    def lost(self) -> list[str]:
        """Runs that did not come to their right end, and messages that nobody consumed."""
        wrong: list[str] = []
        for n, run_id in enumerate(self.ids):
            run = self._client.get(run_id)
            if run.status != "completed" or self._client.result(run_id) != expected(n):
                wrong.append(f"{run_id}: {run.status} {run.output}")
            if run.undelivered:
                wrong.append(f"{run_id}: {run.undelivered} messages unread")
        queued = [*self.services.runs.pending, *self.services.timers.pending, *self.services.steps.pending]
        return wrong + [f"left in a queue: {one.body[:100]}" for one in queued]

    # What happens

    def _begin(self, n: int, run_id: str) -> None:
        self._client.start(order, n, id=run_id)

    def _send(self, n: int, run_id: str) -> None:
        try:
            self._client.send(run_id, GO, n + 1, id=f"go-{n}")
        except LookupError:  # not started yet
            self._at(self._clock.now() + 10, lambda: self._send(n, run_id))

    def _at(self, moment: float, what: Actor | Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), what))

    def _next(self) -> Actor | None:
        """Whose turn it is: the earliest that may go on; time passes until then."""
        if self._turn is not None and self._turn.finished:
            self._ends.pop(id(self._turn))()
        while True:
            self.services.timers.fire_schedules()
            self._hand_out()
            arrivals = self._next_arrival()
            if not self._events and arrivals is None:
                return None
            if not self._events or (arrivals is not None and arrivals < self._events[0][0]):
                assert arrivals is not None
                self._clock.advance_to(max(arrivals, self._clock.now()))
                continue
            moment, _, what = heapq.heappop(self._events)
            self._clock.advance_to(max(moment, self._clock.now()))
            if callable(what):
                what()
                continue
            self._turn = what
            return what

    def _next_arrival(self) -> float | None:
        """When a queue has something for somebody who is free."""
        sources: list[Any] = []
        if self._idle["orchestrator"]:
            sources += [self.services.runs, self.services.timers]
        if self._idle["worker"]:
            sources.append(self.services.steps)
        moments = [source.next_visible_at() for source in sources]
        moments.append(self.services.timers.next_schedule_at())
        return min((moment for moment in moments if moment is not None), default=None)

    def _hand_out(self) -> None:
        for source in (self.services.runs, self.services.timers):
            while self._idle["orchestrator"] and (received := source.receive(BATCH)):
                self._invoke("orchestrator", source, received)
        while self._idle["worker"] and (received := self.services.steps.receive(1)):
            self._invoke("worker", self.services.steps, received)

    def _invoke(self, kind: str, source: Any, received: Sequence[Received]) -> None:
        server = self._idle[kind].pop()
        deliveries: list[Any]
        if kind == "worker":
            deliveries = [TaskDelivery(id=one.receipt, body=one.body, receive_count=1) for one in received]
        else:
            deliveries = [
                Delivery(id=one.receipt, body=one.body, arrived_at=one.sent_at, sequence=one.sequence)
                for one in received
            ]
            for one in received:
                self._note_arrival(one)
        actor = self._stage.enter(lambda: server.process(deliveries, remaining=INVOCATION_SECONDS[kind]))

        def end() -> None:
            if actor.error is not None:
                raise actor.error
            for one in received:
                if one.receipt in actor.answer:
                    source.change_visibility(one.receipt, 2.0)
                    self.seen["came back"] += 1
                else:
                    source.acknowledge(one.receipt)
            self._idle[kind].append(server)

        self._ends[id(actor)] = end
        self._at(self._clock.now(), actor)

    def _note_arrival(self, one: Received) -> None:
        """From when on the run should be on its way: what was due then, or was sent then."""
        envelope = from_body(one.body)
        due = envelope.due_at if isinstance(envelope, TimerFired) else one.sent_at
        if isinstance(envelope, Deliver | TimerFired) and due <= self._clock.now():
            self._arrivals[envelope.run_id] = min(due, self._arrivals.get(envelope.run_id, due))

    def _port_call(self, name: str, perform: Callable[[], Any]) -> Any:
        actor = self._turn
        assert actor is not None
        low, high = LATENCY[name.partition(".")[0]]
        self._at(self._clock.now() + self._random.uniform(low, high), actor)
        actor.pause(name)
        self.calls[name] += 1
        try:
            answer = perform()
        except Fenced:
            self.seen["fenced"] += 1
            raise
        if isinstance(answer, Acquired):
            self.seen["turns"] += 1
            if (since := self._arrivals.pop(answer.run.id, None)) is not None:
                self.latencies.append(self._clock.now() - since)
        elif isinstance(answer, Held | WakesMoved):
            self.seen["conflicts"] += 1
        return answer

    def _orchestrator(self) -> Orchestrator:
        return Orchestrator(app, self._ports, options=EngineOptions(parallel_runs=1), steps=InlineStepRunner)


def percentile(values: list[float], share: float) -> float:
    """The value below which this share of all lies."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) if ordered else 0.0


def main() -> int:
    """Prints what it came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--orchestrators", type=int, default=50)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    load = Load(**vars(options))
    began, start = time.perf_counter(), load.services.clock.now()
    load.play()
    lost = load.lost()
    report = {
        **vars(options),
        "virtual_seconds": round(load.services.clock.now() - start, 1),
        "turns": load.seen["turns"],
        "requests": load.calls.total(),
        "requests_per_run": round(load.calls.total() / options.runs, 1),
        "by_call": dict(load.calls.most_common(12)),
        "conflicts": load.seen["conflicts"],
        "fenced": load.seen["fenced"],
        "came_back": load.seen["came back"],
        "wake_latency_p50": percentile(load.latencies, 0.5),
        "wake_latency_p99": percentile(load.latencies, 0.99),
        "wake_latency_max": percentile(load.latencies, 1.0),
        "lost": len(lost),
        "real_seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(report, indent=1))
    for line in lost[:20]:
        print(line, file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
