"""Turns a batch of queue messages into turns: one per run, runs side by side, failures one by one."""

from __future__ import annotations

import logging
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, assert_never

from durable.engine.cache import HistoryCache
from durable.engine.continuing import led_on
from durable.engine.events import publish
from durable.engine.lease import RunGone
from durable.engine.options import EngineOptions
from durable.engine.steps import ThreadStepRunner
from durable.engine.turn import Turns
from durable.errors import StoreUnavailable
from durable.lanes import pump
from durable.logs import about_run
from durable.model.envelope import Deliver, Envelope, Publish, Pump, Start, StartSpec, TimerFired, Wake, from_body
from durable.model.limits import SQS_DELAY_SECONDS
from durable.model.message import REPORTS, StoredMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.app import App
    from durable.engine.steps import StepRunner
    from durable.ports import Ports

log = logging.getLogger("durable")

EARLY = 0.05
"""A timer is early if it has more than this to go, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message of a queue, whatever queue it came from."""

    id: str
    """The queue's own id of the message, named in the answer when it must come back."""
    body: str
    arrived_at: float
    """When the queue accepted it, seconds since 1970."""
    sequence: str = ""
    """Its number in its FIFO group; empty for a standard queue."""


class Orchestrator:
    """What an invocation of the orchestrator function does; built once per container."""

    def __init__(
        self, app: App, ports: Ports, *, code_version: str = "local", options: EngineOptions | None = None,
        steps: Callable[[], StepRunner] = ThreadStepRunner,
    ) -> None:  # fmt: skip
        self._ports = ports
        self._options = options or EngineOptions()
        self._turns = Turns(
            app=app, ports=ports, options=self._options, code_version=code_version, new_runner=steps,
            cache=HistoryCache(self._options.cached_entries),
        )  # fmt: skip
        self._longest = 0.0

    def process(self, deliveries: Sequence[Delivery], *, remaining: float) -> Sequence[str]:
        """Handles a batch; answers the ids of deliveries that failed and must come back.

        `remaining` is what the invocation has left, in seconds. One run's trouble is never another's.
        """
        ends = self._ports.clock.monotonic() + remaining
        self._longest = max(self._longest, remaining - self._options.reserve_of(remaining))
        groups: defaultdict[str, list[tuple[Delivery, Envelope]]] = defaultdict(list)
        failed: list[str] = []
        for delivery in deliveries:
            try:
                envelope = from_body(delivery.body)
            except ValueError:  # its text may be anybody's secret: it stays out of the log
                log.warning("message %s is none of ours; the queue gives it to its dead letters", delivery.id)
                failed.append(delivery.id)
                continue
            of_no_run = isinstance(envelope, Publish)  # each by itself: one that fails holds up no other
            groups[delivery.id if of_no_run else envelope.run_id].append((delivery, envelope))
        if len(groups) == 1 or self._options.parallel_runs == 1:
            outcomes = [self._one_run(run_id, group, ends) for run_id, group in groups.items()]
        else:
            with ThreadPoolExecutor(self._options.parallel_runs, "durable-run") as pool:
                outcomes = list(pool.map(self._one_run, groups.keys(), groups.values(), repeat(ends)))
        return failed + [delivery_id for outcome in outcomes for delivery_id in outcome]

    def _one_run(self, run_id: str, group: Sequence[tuple[Delivery, Envelope]], ends: float) -> Sequence[str]:
        with about_run(run_id):
            try:
                self._handle(run_id, group, ends)
            except StoreUnavailable as error:
                log.warning("run %s: %s", run_id, error)
            except Exception:
                log.exception("run %s: the turn failed and will be tried again", run_id)
            else:
                return ()
        return [delivery.id for delivery, _ in group]

    def _handle(self, run_id: str, group: Sequence[tuple[Delivery, Envelope]], ends: float) -> None:
        turn_wanted = due_is_near = False
        start: StartSpec | None = None
        for delivery, received in group:
            match envelope := self._ports.texts.envelope(received):
                case Deliver():
                    self._ports.store.put_message(run_id, self._message(delivery, envelope))
                    turn_wanted, start = True, start or envelope.start
                    due_is_near = due_is_near or envelope.kind == "result"  # the end of an attempt was to be looked at
                case TimerFired(due_at=due_at):
                    if self._forward_if_early(run_id, due_at):
                        continue
                    turn_wanted = due_is_near = True
                case Start() | Wake():
                    turn_wanted = due_is_near = True
                case Pump() | Publish():
                    self._handle_other(delivery, envelope, ends)
                case _:
                    assert_never(envelope)
        if not turn_wanted:
            return
        try:
            successor = self._turns.take(run_id, ends=ends, longest=self._longest, due_is_near=due_is_near, start=start)
        except RunGone:
            self._drop(run_id, group)
            return
        if successor is not None:
            for delivery, envelope in group:
                if isinstance(envelope, Deliver) and envelope.kind not in REPORTS:
                    self._ports.runs.send(led_on(self._message(delivery, envelope), successor))

    def _drop(self, run_id: str, group: Sequence[tuple[Delivery, Envelope]]) -> None:
        """Messages to a run that is gone would stay for good, and be read by the next run of its id."""
        ids = [envelope.id for _, envelope in group if isinstance(envelope, Deliver)]
        if ids:
            self._ports.store.delete_messages(run_id, ids)
            if self._ports.store.get(run_id) is not None:  # created while we deleted: they must come again
                message = f'run "{run_id}" was created just now; messages to it are delivered again'
                raise StoreUnavailable(message)
            log.warning("run %s does not exist: %d messages to it are dropped", run_id, len(ids))

    def _handle_other(self, delivery: Delivery, envelope: Pump | Publish, ends: float) -> None:
        """What is about no single run."""
        match envelope:
            case Pump(lane=lane):
                pump(self._ports, lane)
            case Publish():
                publish(self._turns.app, self._ports, envelope, accepted_at=delivery.arrived_at, ends=ends)

    def _message(self, delivery: Delivery, envelope: Deliver) -> StoredMessage:
        """A delayed message comes from a standard queue, which tells when it was sent: it arrives now."""
        arrived_at, sequence = delivery.arrived_at if delivery.sequence else self._ports.clock.now(), delivery.sequence
        if envelope.arrived_at is not None:
            arrived_at, sequence = envelope.arrived_at, envelope.sequence
        return StoredMessage(
            id=envelope.id, name=envelope.name, body=envelope.body, kind=envelope.kind, arrived_at=arrived_at,
            sequence=sequence,
        )  # fmt: skip

    def _forward_if_early(self, run_id: str, due_at: float) -> bool:
        """Schedules are precise to a minute and fire early on purpose; the rest of the way is a queue's delay."""
        left = due_at - self._ports.clock.now()
        if left <= EARLY:
            return False
        again = TimerFired(run_id=run_id, due_at=due_at, id=self._ports.new_id())
        self._ports.timers.send(again, delay=min(max(1.0, left), SQS_DELAY_SECONDS))
        return True
