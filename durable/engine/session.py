"""The live part of a turn: perform what the workflow asks for, record one result, deliver it, and again."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_core import to_json

from durable.engine.announcing import Announcer
from durable.engine.attempts import Attempts, earliest
from durable.engine.dispatching import Dispatcher
from durable.engine.lease import dead_turns, load_messages
from durable.engine.lifelines import given_more_time
from durable.engine.mailbox import Mailbox, fits
from durable.engine.pauses import Continues, Ended, OutOfTime, Pause, Quiescent, Stopped
from durable.engine.replying import reply_recorded
from durable.engine.stopping import CancellationRecord, Ending, verdict
from durable.engine.transacting import transact
from durable.engine.waiting import Waits
from durable.errors import Fenced
from durable.execution import Raised
from durable.model.stored import check_readable
from durable.ops.call import CallOperation
from durable.ops.continuation import ContinuationOperation
from durable.ops.dispatched import DispatchedOperation
from durable.ops.effect import EffectOperation
from durable.ops.operation import KnownOperation, WaitOperation
from durable.ops.review import ReviewOperation
from durable.ops.step import StepOperation
from durable.ops.transact import TransactOperation
from durable.ops.update import AnswerOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.engine.ceiling import Ceiling
    from durable.engine.lease import Lease, Loaded
    from durable.engine.options import EngineOptions
    from durable.engine.steps import StepRunner
    from durable.engine.writer import EntryWriter
    from durable.execution import Execution
    from durable.model.attributes import Attributes
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ports import Ports
    from durable.propagation import Carriers


class Session:
    """Everything that one turn performs. Results are recorded one at a time and delivered in that order."""

    def __init__(
        self, *, ports: Ports, lease: Lease, loaded: Loaded, execution: Execution, writer: EntryWriter,
        runner: StepRunner, options: EngineOptions, longest: float, code_version: str, carriers: Carriers,
        ceiling: Ceiling,
    ) -> None:  # fmt: skip
        self._ports = ports
        self._ceiling = ceiling
        self._run = lease.run
        self._ends = lease.ends
        self._options = options
        self._execution = execution
        self._writer = writer
        self._mailbox = Mailbox(loaded.messages, loaded.consumed)
        self._loaded = loaded
        self._waits = Waits()
        self._reviews: list[ReviewOperation] = []
        self._known: deque[KnownOperation | EffectOperation | TransactOperation] = deque()
        self._announcer = Announcer(
            ports, lease.run, execution.journal.outgoing, writer.streams, code_version=code_version
        )
        writer.before = self._announcer.store
        self._continuation: ContinuationOperation | None = None
        self._wakes = lease.run.wakes
        self._next_look = ports.clock.monotonic() + options.watch
        self._dispatcher = Dispatcher(ports, lease.run, writer, self._deliver)
        self._steps = Attempts(
            run=lease.run, writer=writer, runner=runner, clock=ports.clock, options=options, ends=lease.ends,
            longest=longest, carriers=carriers,
        )  # fmt: skip

    @property
    def unread(self) -> int:
        """How many messages nobody has consumed, of those that somebody has sent."""
        return sum(message.awaits_consumption for message in self._mailbox.unread)

    @property
    def late_results(self) -> int:
        """How many of the messages are results of attempts that had been given up."""
        return sum(message.kind == "result" for message in self._mailbox.unread)

    @property
    def messages(self) -> Sequence[StoredMessage]:
        """Those, in order of arrival."""
        return self._mailbox.unread

    @property
    def annotations(self) -> tuple[tuple[str, ...], Attributes]:
        """The run's tags and attributes as they are now."""
        return self._announcer.annotations

    @property
    def run(self) -> Run:
        """The record as this turn knows it: somebody may have cancelled it meanwhile, or want to know of its end."""
        return self._run

    @property
    def wakes(self) -> int:
        """The count of wakes that this turn has taken into account."""
        return self._wakes

    def close(self) -> None:
        """The turn is over: bodies that still run are told that their results are not wanted."""
        self._steps.abandon()

    @property
    def verdict(self) -> Ending | None:
        """What becomes of the run if its code is to go no further."""
        return verdict(self._run, self._ports.clock.now())

    def look_again(self, run: Run) -> None:
        """Something asked for a turn meanwhile. The count comes first: what arrives after it moves it again."""
        self._wakes = run.wakes
        self._run = replace(self._run, cancel_requested=run.cancel_requested, watched=run.watched)
        messages = load_messages(self._ports, self._run)
        check_readable(message.body for message in messages)
        self._mailbox.add(messages)

    def begin(self) -> None:
        """Replays the history and takes in the first operations without a record."""
        self._execution.advance()
        self._dispatcher.resume(self._execution.journal.parked.values())
        results = self._take_in()
        if self.verdict is not None:
            return
        if self._run.died:
            results.append(self._steps.charge(self._dead_turns()))
        for entry in results:
            self._deliver(entry)

    def go(self) -> Pause:
        """Performs, records and delivers until nothing is left to do here."""
        while not self._execution.finished:
            if (ending := self.verdict) is not None:
                return self._at_the_end(Stopped(ending))
            if self._run.cancel_requested is None:
                self._ceiling.check()
            if self._continuation is not None and not self._continuation.dead:
                if self._record_cancellation():
                    continue
                self._dispatcher.close_cancelled()
                return Continues(self._continuation)
            self._steps.forget_cancelled()
            self._dispatcher.close_cancelled()
            if self._ports.clock.monotonic() < self._ends and self._record_next():
                continue
            self._announcer.store()  # before bodies of steps run for long
            self._show_reviews()
            if self._dispatcher and self._ports.clock.monotonic() < self._ends:
                self._mailbox.add(self._dispatcher.dispatch())
                continue
            out_of_time = self._steps.start_due()
            if self._steps.running:
                self._await_step()
                continue
            if out_of_time or self._ports.clock.monotonic() >= self._ends:
                return OutOfTime(list(self._waits))
            if not self._wait_in_place():
                self._execution.check_stuck(pending=bool(self._waits or self._steps))
                return Quiescent(list(self._waits), earliest([self._next_due(), self._run.deadline]))
        return self._at_the_end(Ended())

    def _at_the_end(self, pause: Ended | Stopped) -> Pause:
        """Before a rollback, waits for the steps that run and can be undone: what comes of them is recorded, not handed out."""
        if isinstance(pause, Ended) and not self.has_failed:
            return pause
        self._steps.only_undoable(self._in_doubt())
        while self._steps:
            out_of_time = self._steps.start_due()
            if not self._steps.running:
                return OutOfTime(list(self._waits)) if out_of_time else pause
            self._steps.wait(max(0.0, self._ends - self._ports.clock.monotonic() + self._options.reserve))
        return pause

    @property
    def has_failed(self) -> bool:
        """Whether the workflow has ended with an error, so that its steps are to be undone."""
        stays = self._execution.ended_by_cancellation and self._run.cancel_requested != "compensate"
        return isinstance(self._execution.outcome, Raised) and not stays

    def _in_doubt(self) -> list[StepOperation]:
        """Steps that can be undone and that a lost turn may have begun: they are done again, so that they can be."""
        if not self._run.fences:
            return []
        now = self._ports.clock.now()
        waiting = [op for op in self._execution.journal.parked.values() if isinstance(op, StepOperation)]
        undoable = [op for op in waiting if op.policy.undo_fn is not None and not op.policy.at_most_once]
        return [op for op in undoable if not op.attempts or (op.attempts[-1].retry_at or 0.0) <= now]

    # One thing at a time

    def _record_next(self) -> bool:
        ready = self._record_known() or self._record_cancellation() or self._record_ready_wait()
        return ready or self._dispatcher.give_up_overdue()  # a result that is here counts, whatever the time

    def _record_cancellation(self) -> bool:
        """Before any wait: what the run is cancelled out of consumes nothing more."""
        if self._run.cancel_requested != "graceful" or self._execution.cancelled:
            return False
        keys = to_json(self._execution.cancellable()).decode()
        self._execution.cancel(self._writer.write(CancellationRecord(), value=keys))
        for result in self._take_in():
            self._deliver(result)
        return True

    def _record_known(self) -> bool:
        while self._known:
            operation = self._known.popleft()
            if operation.dead:
                continue
            if isinstance(operation, EffectOperation):
                entry, answer = self._dispatcher.perform(operation)
                self._mailbox.add(() if answer is None else (answer,))
            elif isinstance(operation, TransactOperation):
                entry = transact(self._writer, operation)
            else:
                entry = self._writer.write(operation, value=operation.text)
            self._deliver(entry)
            return True
        return False

    def _record_ready_wait(self) -> bool:
        ready = self._mailbox.first_ready(self._waits.candidates(self._mailbox.channels), self._ports.clock.now())
        if ready is None:
            return False
        wait = ready.wait
        if unfit := [message for message in ready.messages if not fits(wait, message)]:
            self._mailbox.set_aside(wait, unfit)
            return True
        if isinstance(wait, CallOperation):
            self._mailbox.consume(ready.messages)
            self._dispatcher.answer(wait, ready.messages[0])
            return True
        if not ready.messages and given_more_time(self._ports, self._run.id, self._waits, wait):
            return True
        self._waits.remove(wait)
        if ready.messages:
            entry = self._writer.write(
                wait, value=wait.on_messages(ready.messages), error=wait.error_of(ready.messages),
                messages=tuple(ready.messages),
            )  # fmt: skip
            self._mailbox.consume(ready.messages)
        else:
            value, error = wait.on_deadline()
            entry = self._writer.write(wait, value=value, error=error)
        if isinstance(wait, DispatchedOperation):
            self._dispatcher.done(wait)
        self._deliver(entry)
        return True

    def _await_step(self) -> None:
        """Until a body ends, a wait or a retry is due, or it is time to look whether a message has come."""
        clock = self._ports.clock
        limits = [self._options.watch, self._ends - clock.monotonic() + self._options.reserve]
        due = earliest([self._next_due(), self._run.deadline])
        if due is not None:
            limits.append(due - clock.now())
        self._deliver(self._steps.wait(max(0.0, min(limits))))
        if clock.monotonic() >= self._next_look:
            self._next_look = clock.monotonic() + self._options.watch
            self._watch()

    def _watch(self) -> None:
        run = self._ports.store.get(self._run.id)
        if run is None or run.epoch != self._run.epoch:
            raise Fenced(self._run.id, self._run.epoch)
        if run.wakes != self._wakes:
            self.look_again(run)

    def _wait_in_place(self) -> bool:
        """A wait of up to a second costs less here than a suspension."""
        due = self._next_due()
        if due is None:
            return False
        clock = self._ports.clock
        left = due - clock.now()
        if left > self._options.short_wait or clock.monotonic() + left > self._ends:
            return False
        clock.sleep(max(0.0, left))
        return True

    def _next_due(self) -> float | None:
        next_start = self._steps.next_start(self._ports.clock.now())
        return earliest([next_start, self._waits.next_deadline, self._dispatcher.next_due])

    # Taking in and handing out

    def _deliver(self, entry: Entry | None) -> None:
        if entry is None:
            return
        self._execution.deliver(entry)
        for result in self._take_in():
            self._deliver(result)

    def _take_in(self) -> list[Entry | None]:
        """Sorts what the workflow newly awaits; results of steps that may not be attempted again come back at once."""
        results: list[Entry | None] = []
        operations = self._execution.take()
        for operation in operations:
            if isinstance(operation, KnownOperation) and operation.answered:
                self._record_answered(operation)
        for operation in operations:
            match operation:
                case StepOperation():
                    results.append(self._steps.admit(operation))
                case KnownOperation(answered=True):
                    continue
                case EffectOperation() | TransactOperation() | KnownOperation():
                    self._known.append(operation)
                case DispatchedOperation():
                    self._dispatcher.admit(operation)
                    self._waits.add(operation)
                case WaitOperation():
                    self._waits.add(operation)
                    if isinstance(operation, ReviewOperation):
                        self._reviews.append(operation)
                case ContinuationOperation():
                    self._continuation = operation
                case _:
                    raise TypeError(operation)
        return results

    def _record_answered(self, operation: KnownOperation) -> None:
        """What the code goes on with already."""
        entry = self._writer.write(operation, value=operation.text)
        if isinstance(operation, AnswerOperation):
            self._writer.confirm()
            reply_recorded(self._ports, self._run, entry)

    def _show_reviews(self) -> None:
        self._reviews = [review for review in self._reviews if not review.dead]
        self._announcer.show_reviews(self._reviews)

    def _dead_turns(self) -> int:
        return dead_turns(self._loaded, self._run.epoch, self._run.clean_epoch, self._run.released_epoch)
