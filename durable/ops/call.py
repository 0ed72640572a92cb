"""A call of a remote step: performed by a worker elsewhere, attempt by attempt, while the run is suspended.

| state            | history at the location                 | what happens                                                |
|------------------|-----------------------------------------|-------------------------------------------------------------|
| new              | nothing                                 | the engine records `?1` and sends the task                  |
| open             | `?k`                                    | the run waits for the result of attempt k, or its time is up |
| between attempts | `?k`, `@k` with an error and `retry_at` | when that comes, the engine records `?k+1` and sends it     |
| done             | besides, an entry with the result       | the value is decoded and returned                           |
| failed           | besides, an entry with an error         | StepFailed is raised, as of a step                          |
| abandoned        | besides, an entry that says so          | the code was cancelled: the attempt is closed               |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from durable import codec, failures
from durable.errors import InvalidInput, LimitExceeded, UndecodableHistory
from durable.flow import FlowQueue, lane_of_call
from durable.model.call import PICKUP_SECONDS, CallOrder, attempt_of, order_from, task_id_of
from durable.model.limits import BLOB_BYTES
from durable.model.task import outcome_from
from durable.ops.arguments import arguments_text
from durable.ops.dispatched import DispatchedOperation
from durable.ops.operation import until
from durable.options import DEFAULT_BACKOFF, Backoff

if TYPE_CHECKING:
    from durable.definitions import RemoteStep
    from durable.errors import ErrorInfo
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.task import TaskOutcome
    from durable.ops.effect import Stamp
    from durable.ops.operation import Host
    from durable.options import Call

SHOWN_CHARS: Final = 256
"""Longer results are not held twice: the entry has the message that brought it."""

NO_QUEUES: Final[Mapping[str, FlowQueue]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What applies to a call: the call's own word, else what the remote step says."""

    queue: str
    priority: int
    retries: int
    backoff: Backoff
    timeout: float
    heartbeat: float | None
    pickup: float
    total: float | None


def terms_of(remote: RemoteStep[..., Any], call: Call) -> Terms:
    """The terms of a call under these options."""
    usual = remote.options

    def said(name: str, default: Any) -> Any:
        own = getattr(call, name)
        own = getattr(usual, name) if own is None else own
        return default if own is None else own

    return Terms(
        queue=said("queue", remote.queue), priority=call.priority or usual.priority,
        retries=said("retries", remote.retries), backoff=said("backoff", DEFAULT_BACKOFF),
        timeout=said("timeout", remote.timeout), heartbeat=said("heartbeat", remote.heartbeat),
        pickup=said("pickup_timeout", PICKUP_SECONDS), total=said("total", None),
    )  # fmt: skip


class CallOperation(DispatchedOperation):
    """`await ctx.call(print_label, order)`."""

    __slots__ = ("_call", "_order", "_queues", "_remote", "_run_id")
    kind = "call"
    answered_by = "result"

    def __init__(
        self, host: Host, name: str | None, call: Call, remote: RemoteStep[..., Any], args: tuple[Any, ...],
        kwargs: Mapping[str, Any], *, queues: Mapping[str, FlowQueue] = NO_QUEUES,
    ) -> None:  # fmt: skip
        """Raises NotStorable, LimitExceeded or InvalidInput for arguments that cannot be sent."""
        self._call = call
        self._remote = remote
        self._run_id = host.run_id
        self._queues = queues
        self._order: CallOrder | None = None
        super().__init__(host, name or call.name or remote.options.name, remote.name, remote.name)
        self._listen()
        if not self._opened and (self.record is None or self.record.entry is None):  # else the arguments are recorded
            try:
                self._order = self._ordered(_input_of(remote, args, kwargs))
            except Exception:
                self.close()  # it was called, if in vain: nobody can await it
                raise

    @property
    def name(self) -> str:
        """Its own name, without its scope."""
        return self.location[len(self.scope.prefix) :]

    @property
    def terms(self) -> Terms:
        """What applies to the next attempt; the code may have changed since the last."""
        return terms_of(self._remote, self._call)

    @property
    def key_of_effect(self) -> str:
        """The idempotency key: the same for every attempt at this call."""
        return sha256(f"{self._run_id}:{self.location}".encode()).hexdigest()[:32]

    # Attempts

    @property
    def _opened(self) -> Sequence[Entry]:
        """None of an attempt that failed, where a retry of the run was cut short while it forgot the attempts."""
        return [fact for fact in self.facts if fact.mark.startswith("?")]

    @property
    def latest(self) -> Entry | None:
        """The latest fact about it: an attempt that was opened, or one that failed."""
        return max(self.facts, key=lambda fact: fact.order, default=None)

    @property
    def open(self) -> Entry | None:
        """The entry that opened the attempt under way; None before the first and between two."""
        latest = self.latest
        return latest if latest is not None and latest.mark.startswith("?") else None

    @property
    def attempt(self) -> int:
        """The number of the latest attempt; 0 before the first."""
        latest = self.latest
        return 0 if latest is None else attempt_of(latest)

    @property
    def next_attempt(self) -> int:
        return self.attempt + 1

    @property
    def retry_at(self) -> float | None:
        """Between two attempts: when the next may begin."""
        latest = self.latest
        return None if latest is None else latest.retry_at

    @property
    def ends_at(self) -> float | None:
        """When all of it must be over, seconds since 1970; None without such a limit, or before it has begun."""
        opened = self._opened
        if not opened:
            return None
        first, last = min(opened, key=lambda fact: fact.order), max(opened, key=lambda fact: fact.order)
        total = order_from(last.value).total
        return None if total is None else first.at + total

    def opening(self, stamp: Stamp) -> str:  # noqa: ARG002 - the ids of attempts are made of the entries that open them
        if self._order is not None and not self._opened:
            return self._order.to_text()
        before = order_from(self._opened[0].value)
        try:
            return self._ordered(before.input).to_text()
        except InvalidInput:  # the queue has another key now, which the arguments lack: the lane stays
            return before.to_text()

    def _ordered(self, input: str) -> CallOrder:
        terms = self.terms
        return CallOrder(
            name=self._remote.name, queue=terms.queue, input=input, key=self.key_of_effect, timeout=terms.timeout,
            heartbeat=terms.heartbeat, pickup=terms.pickup, total=terms.total,
            lane=lane_of_call(self._queues, terms.queue, input, priority=terms.priority),
        )  # fmt: skip

    # Results

    def answers(self, opened: Entry, message: StoredMessage) -> bool:
        return message.id == task_id_of(opened)

    def outcome(self, message: StoredMessage) -> TaskOutcome:
        """What a message tells of an attempt; raises UndecodableHistory."""
        try:
            return outcome_from(message.body)
        except ValueError as error:
            raise UndecodableHistory(self.location, "the result of a remote step", codec.reason_of(error)) from None

    def misfit(self, outcome: TaskOutcome) -> ErrorInfo | None:
        """Why a value is none that the remote step declares: its worker may run other code, in another language even."""
        if outcome.error is not None:
            return None
        try:
            codec.decode(outcome.value, self._remote.output_type)
        except ValueError as error:
            what = f'the result of remote step "{self._remote.name}" that {outcome.worker} has sent'
            return failures.record(InvalidInput(what, codec.reason_of(error)))
        return None

    def on_messages(self, messages: Sequence[StoredMessage]) -> str | None:
        """The value of the entry, for people: the code reads the message, which the entry has too."""
        value = self.outcome(messages[0]).value
        return value if value is not None and len(value) <= SHOWN_CHARS else None

    def error_of(self, messages: Sequence[StoredMessage]) -> ErrorInfo | None:
        return self.outcome(messages[0]).error

    def decode(self, entry: Entry) -> Any:
        if entry.error is not None:
            raise failures.step_failed(self.name, entry.attempts, entry.error, entry.failure or "exhausted")
        return self.read(self.outcome(entry.messages[0]).value, self._remote.output_type)

    def describe(self) -> str:
        latest = self.latest
        if latest is None or latest.mark == "?1":
            return f'remote step "{self.location}"'
        if latest.mark.startswith("?"):
            return f'remote step "{self.location}" (attempt {attempt_of(latest)})'
        return f'the next attempt of remote step "{self.location}"{until(latest.retry_at)}'


def _input_of(remote: RemoteStep[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    text = arguments_text(remote.fn, args, kwargs)
    if len(text) * 4 > BLOB_BYTES and (size := len(text.encode())) > BLOB_BYTES:
        raise LimitExceeded(
            f'the arguments of remote step "{remote.name}"', size, BLOB_BYTES,
            instead="Store it elsewhere (S3) and pass a reference to it.",
        )  # fmt: skip
    return text
