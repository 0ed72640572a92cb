"""Attempts at remote steps: sent, judged by their results or by their silence, made again, given up.

| what comes first                         | is recorded as                                   | and then                             |
|------------------------------------------|--------------------------------------------------|--------------------------------------|
| the result of the attempt that is open   | the call's result                                | the attempt leaves its lane          |
| its failure, and there may be another    | `@k`, with the message and the time of the next  | the same; then `?k+1` is dispatched  |
| the end of its time, by what its row says | `@k` or the call's failure                       | the attempt is closed                |
| the result of another attempt            | nothing: the message stays unread                | it is counted as late                |

When an attempt is to be looked at again is not recorded. The run was settled to be due no later than the first such
moment, so before that nothing can be overdue, whatever else wakes the run: its row is not read.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, assert_never

from durable import failures
from durable.engine.retries import GiveUp, Retry
from durable.errors import StepTimeout
from durable.lanes import Granted, Waiting, enter, leave, task_action
from durable.model.call import Overdue, attempt_of, first_look, judge, order_from, task_id_of, task_of, ticket_of
from durable.model.lane import Full
from durable.model.limits import TASK_KEPT_SECONDS
from durable.model.task import lane_holder

if TYPE_CHECKING:
    from durable.engine.writer import EntryWriter
    from durable.errors import ErrorInfo
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.model.task import TaskOutcome
    from durable.ops.call import CallOperation
    from durable.ports import Ports


class Calls:
    """The remote steps that one turn waits for."""

    def __init__(self, ports: Ports, run: Run, writer: EntryWriter) -> None:
        self._ports = ports
        self._run = run
        self._writer = writer
        self._moments: dict[str, float] = {}
        self._timed: list[tuple[float, int, CallOperation]] = []
        self._pushed = 0
        armed = run.armed if run.armed is not None and run.due_at is not None and run.armed <= run.due_at else 0.0
        self._not_before = armed if armed > ports.clock.now() else None

    def watch(self, call: CallOperation) -> None:
        """Takes in a call that has been dispatched, or whose next attempt is to come."""
        opened = call.open
        if opened is None:
            self._look_at(call, call.retry_at or 0.0)
        elif self._not_before is not None and opened.epoch <= self._run.clean_epoch:
            self._look_at(call, self._not_before)  # most turns come to nothing of this: nothing is parsed
        else:
            self._look_first(call, opened)

    @property
    def next_due(self) -> float | None:
        """When something is to be done about a call although no message has come, seconds since 1970."""
        while self._timed and not self._counts(self._timed[0]):
            heapq.heappop(self._timed)
        return self._timed[0][0] if self._timed else None

    def next(self) -> CallOperation | None:
        """A call about which something is to be done now: to be dispatched again, or to be looked at."""
        due = self.next_due
        if due is None or due > self._ports.clock.now():
            return None
        call = heapq.heappop(self._timed)[2]
        del self._moments[call.key]
        return call

    def _look_first(self, call: CallOperation, opened: Entry) -> float:
        look, ends_at = first_look(order_from(opened.value), opened.at), call.ends_at
        look = look if ends_at is None else min(look, ends_at)
        self._look_at(call, look)
        return look

    def _look_at(self, call: CallOperation, moment: float) -> None:
        self._moments[call.key] = moment
        self._pushed += 1
        heapq.heappush(self._timed, (moment, self._pushed, call))

    def _counts(self, timed: tuple[float, int, CallOperation]) -> bool:
        moment, _, call = timed
        return not call.dead and self._moments.get(call.key) == moment

    # What is recorded

    def answered(self, call: CallOperation, message: StoredMessage) -> Entry:
        """Records what the message tells of the attempt: the result, the failure, or that another attempt follows."""
        outcome = call.outcome(message)
        self._moments.pop(call.key, None)
        error = outcome.error or call.misfit(outcome)
        if error is None:
            return self._writer.write(
                call, value=call.on_messages([message]), attempts=call.attempt, started_at=outcome.started_at,
                messages=(message,),
            )  # fmt: skip
        opened, verdict = call.open, _after(call, error, outcome)
        entry = self._failed(call, error, verdict, outcome.started_at, (message,))
        if entry.mark and opened is not None:
            leave_lane(self._ports, self._run, opened)
        return entry

    def overdue(self, call: CallOperation, opened: Entry) -> Entry | None:
        """Looks at an attempt whose time may be over, and records that it is; None if it is not."""
        now = self._ports.clock.now()
        if self._look_first(call, opened) > now:
            return None
        ends_at = call.ends_at
        if ends_at is not None and now >= ends_at:
            total = order_from(opened.value).total or 0.0
            why, verdict = f"the call as a whole has reached its {total:g} s", GiveUp("timeout")
        else:
            judged = self._judge(opened, now)
            if not isinstance(judged, Overdue):
                self._look_at(call, judged if ends_at is None else min(judged, ends_at))
                return None
            why, verdict = judged.why, None
        error = failures.record(StepTimeout(order_from(opened.value).timeout, why))
        entry = self._failed(call, error, verdict or _after(call, error), None, ())
        self._writer.confirm()  # somebody else may own the run, and still wait for this attempt
        close_attempt(self._ports, self._run, opened, why)
        return entry

    def _judge(self, opened: Entry, now: float) -> float | Overdue:
        store, order, attempt = self._ports.store, order_from(opened.value), task_id_of(opened)
        row = store.get_task(self._run.id, attempt)
        if order.lane is None or (row is not None and (row.picked_up_at is not None or row.closed is not None)):
            return judge(order, opened.at, row, now)
        if store.find_ticket(order.lane.spec.name, lane_holder(self._run.id, attempt)) is not None:
            return judge(order, opened.at, row, now, queued=True)
        if row is None:  # its turn has come since we last looked, and from now on it can be picked up
            row = store.beat_task(self._run.id, attempt, now=now, progress=None)
        return judge(order, opened.at, row, now)

    def _failed(
        self, call: CallOperation, error: ErrorInfo, verdict: Retry | GiveUp, started_at: float | None,
        messages: tuple[StoredMessage, ...],
    ) -> Entry:  # fmt: skip
        """Between two attempts there is a fact `@k`; only the last failure is a result."""
        attempt, ends_at = call.attempt, call.ends_at
        if isinstance(verdict, Retry):
            retry_at = self._ports.clock.now() + verdict.delay
            if ends_at is None or retry_at < ends_at:
                return self._writer.write(
                    call, mark=f"@{attempt}", attempts=attempt, error=error, started_at=started_at, retry_at=retry_at,
                    messages=messages,
                )  # fmt: skip
            verdict = GiveUp("timeout")  # the call as a whole has no time for another attempt
        return self._writer.write(
            call, error=error, failure=verdict.kind, attempts=attempt, started_at=started_at, messages=messages
        )


def _after(call: CallOperation, error: ErrorInfo, outcome: TaskOutcome | None = None) -> Retry | GiveUp:
    """What follows the failure of the attempt under way."""
    if outcome is not None and (outcome.error is None or not outcome.retryable):
        return GiveUp(outcome.failure or "critical")
    terms, attempt = call.terms, call.attempt
    if attempt > terms.retries:
        return GiveUp("timeout" if error.matches(StepTimeout) else "exhausted")
    if outcome is not None and outcome.retry_after is not None:
        return Retry(max(0.0, outcome.retry_after))
    return Retry(terms.backoff.delay_after(attempt, call.key_of_effect))


# Effects: each is harmless twice


def send_attempt(ports: Ports, run: Run, opened: Entry) -> None:
    """Hands an attempt to the workers, or has it wait for its turn in its lane: then whoever grants that sends it."""
    order = order_from(opened.value)
    task = task_of(run, opened, order)
    if order.lane is None:
        ports.steps.send(task)
        return
    answer = enter(ports, order.lane.spec, ticket_of(task, order.lane, action=task_action(task)))
    match answer:
        case Granted():
            ports.steps.send(task)
        case Waiting():
            pass
        case Full():
            raise AssertionError(f"lane {order.lane.spec.name} has a longest queue; those of remote steps have none")
        case _:
            assert_never(answer)


def close_attempt(ports: Ports, run: Run, opened: Entry, why: str) -> None:
    """Tells whoever performs the attempt that its result is not wanted, then lets the next one into its lane."""
    now = ports.clock.now()
    ports.store.close_task(run.id, task_id_of(opened), reason=why, expires_at=now + TASK_KEPT_SECONDS)
    leave_lane(ports, run, opened)


def leave_lane(ports: Ports, run: Run, opened: Entry) -> None:
    """Gives back the slot of an attempt. Its worker does so too, unless it died on the way."""
    order = order_from(opened.value)
    if order.lane is not None:
        leave(ports, order.lane.spec.name, lane_holder(run.id, task_id_of(opened)))


def attempt_over(entry: Entry) -> str | None:
    """The key of the entry that opened the attempt whose failure this one tells; None for all others."""
    if entry.kind != "call" or not entry.mark.startswith("@"):
        return None
    return f"{entry.location}?{attempt_of(entry)}"
