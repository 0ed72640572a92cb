"""The ports: everything the engine asks of the world, with the promises that adapters keep.

Every method is one atomic effect. A method that raises `StoreUnavailable` may or may not have had its effect;
repeating it with the same arguments is always safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from durable.errors import NotAvailable
from durable.model.answers import (
    Acquired,
    Chunk,
    Created,
    Exists,
    Held,
    KeyTaken,
    Missing,
    NotRunnable,
    Page,
    Payload,
    Refused,
    RunPage,
    RunSummary,
    Settled,
    WakesMoved,
)
from durable.model.attributes import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.model.attributes import Attributes
    from durable.model.delivery import TaskDelivery
    from durable.model.entry import Entry
    from durable.model.envelope import Envelope
    from durable.model.lane import Lane, LaneState, Ticket
    from durable.model.message import StoredMessage
    from durable.model.run import CancelMode, Cut, Run, Settlement, Status, Watcher
    from durable.model.subscription import BufferedEvent, Subscription, SubscriptionPage, Taken
    from durable.model.task import StepTask, TaskRow
    from durable.model.transaction import TransactItem

__all__ = [
    "Acquired",
    "Chunk",
    "Clock",
    "Condition",
    "Created",
    "Exists",
    "Held",
    "Ids",
    "KeyTaken",
    "Missing",
    "NotRunnable",
    "Page",
    "Payload",
    "Ports",
    "Refused",
    "RunPage",
    "RunQueue",
    "RunSummary",
    "Settled",
    "Signing",
    "StepQueue",
    "Store",
    "TaskSource",
    "Texts",
    "Timers",
    "WakesMoved",
]


class Store(Protocol):
    """Runs, their histories and mailboxes, in one place with atomic conditional writes."""

    def create(
        self, run: Run, *, input: str | None = None, idempotency_key: str | None = None
    ) -> Created | Exists | KeyTaken:
        """Creates the run unless its id or the key is taken; `input` is stored apart, all in one transaction."""
        ...

    def get(self, run_id: str) -> Run | None:
        """The run record, strongly consistent."""
        ...

    def get_payload(self, run_id: str, payload: Payload, *, epoch: int = 0) -> str | None:
        """A payload that is stored apart; `epoch` is that of the turn that wrote an output (0 for an input)."""
        ...

    def acquire(
        self, run_id: str, *, owner: str, now: float, lease_until: float, code_version: str, due_is_near: bool
    ) -> Acquired | Held | NotRunnable | Missing:
        """Takes the lease and adds one to the epoch, if the run exists, may run, and nobody holds a live lease.

        A blocked run may run again only under another `code_version`. `due_at` becomes `lease_until` where it is
        absent or more than an hour later, so that maintenance sees a run whose owner dies. `started_at` becomes `now`
        if it is absent: workflow code tells the time by it from its first turn on, so it must never change. `due_is_near` is the
        caller's guess whether `due_at` is within the hour; a wrong guess costs one more request, nothing else.
        A retry by the same `owner` after a lost reply answers `Acquired` again.
        """
        ...

    def announce(self, run_id: str, *, now: float) -> bool:
        """Adds one to `wakes` if a live lease is held: its holder will look again before it settles."""
        ...

    def reopen(
        self, run_id: str, *, owner: str, now: float, lease_until: float, any_ended: bool = False
    ) -> Acquired | Held | NotRunnable | Missing:
        """Takes the lease of a run that failed or died, or with `any_ended` of one that ended in any way.

        The run is suspended again and its ending forgotten: outcome, output, error, reason, and a request to cancel it.
        Not one whose deletion has begun. A retry by the same `owner` after a lost reply answers `Acquired` again.
        """
        ...

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        """Replaces the fences. Raises `Fenced` if `epoch` is no longer the run's."""
        ...

    def record_floor(self, run_id: str, *, epoch: int, n: int) -> None:
        """Notes that the turn prunes items of its own epoch up to `n`, and that the run has pruned.

        Replaces the floors of earlier epochs, which are clean or fenced by now. Raises `Fenced` if `epoch` is no longer
        the run's.
        """
        ...

    def mark_pruned(self, run_id: str, *, epoch: int) -> None:
        """Notes that entries which consumed messages may be gone. Raises `Fenced` if `epoch` is no longer the run's."""
        ...

    def record_cut(self, run_id: str, *, epoch: int, cut: Cut, unburied: Sequence[str]) -> None:
        """Takes part of the history back, and the tombstones of messages that it had consumed.

        Both at once for 99 messages; of more, some tombstones go before. Raises `Fenced` if `epoch` is no longer the
        run's. Deleting the items that were cut is left to the caller.
        """
        ...

    def annotate(self, run_id: str, *, epoch: int, tags: tuple[str, ...] | None, attributes: Attributes | None) -> None:
        """Replaces tags and attributes, in listings too; None leaves them. Raises `Fenced` if `epoch` is no longer the run's."""
        ...

    def clear_carries(self, run_id: str, *, epoch: int) -> None:
        """Forgets the messages carried over, once they are copied. Raises `Fenced` if `epoch` is no longer the run's."""
        ...

    def load(self, run_id: str, *, cursor: str | None = None, mailbox_only: bool = False) -> Page:
        """One page of the run's history and mailbox, strongly consistent; pages are read one after another."""
        ...

    def put_entry(self, run_id: str, entry: Entry) -> None:
        """Writes an entry where there is none, or over one of the same or an older epoch. Raises `Fenced` otherwise."""
        ...

    def transact(self, run_id: str, entry: Entry, items: Sequence[TransactItem]) -> Refused | None:
        """Writes the entry and the author's items in one transaction, if the run is still that of the entry's epoch.

        None once all are written, also when an earlier try had written them and its reply was lost. A condition that
        does not hold, or an item that cannot be written, is `Refused`. Raises `Fenced` where the run has another epoch.
        """
        ...

    def put_payload(self, run_id: str, payload: Payload, text: str, *, epoch: int) -> None:
        """Stores a payload apart, under a name of its own for each epoch."""
        ...

    def put_message(self, run_id: str, message: StoredMessage) -> bool:
        """Puts a message into the mailbox unless one with its id is there; False says that one was."""
        ...

    def delete_messages(self, run_id: str, message_ids: Sequence[str]) -> None:
        """Deletes messages that a loaded entry has consumed."""
        ...

    def delete_entries(self, run_id: str, keys: Sequence[str], *, epoch: int) -> None:
        """Deletes entries of `epoch` or older; a newer one stays."""
        ...

    def keep_compensations(self, run_id: str, entries: Sequence[Entry]) -> None:
        """Keeps what a rollback needs of entries that are about to be pruned; `load` gives them as `Page.kept`."""
        ...

    def bury(self, run_id: str, message_ids: Sequence[str]) -> None:
        """Notes that these messages are consumed, before the entries that consumed them go.

        Runs that continue one another share their tombstones: `run_id` is the id of the lineage, if there is one.
        """
        ...

    def buried(self, run_id: str, message_ids: Sequence[str]) -> set[str]:
        """Which of these messages have a tombstone, strongly consistent; `run_id` as in `bury`."""
        ...

    def put_reply(self, run_id: str, message_id: str, reply: str, *, expires_at: float) -> None:
        """Stores the response to a message, to be forgotten some time after `expires_at`; `run_id` as in `bury`."""
        ...

    def get_reply(self, run_id: str, message_id: str) -> str | None:
        """The response to a message, strongly consistent."""
        ...

    def put_state(self, run_id: str, key: str, text: str, *, epoch: int) -> None:
        """Publishes a value of the run under a key, over what an older epoch published. Raises `Fenced` over a newer one."""
        ...

    def get_state(self, run_id: str, key: str) -> str | None:
        """What the run has published under a key."""
        ...

    def states(self, run_id: str) -> Mapping[str, str]:
        """Everything that the run has published, by key."""
        ...

    def append_stream(self, run_id: str, key: str, chunk_id: str, text: str) -> None:
        """Adds a chunk to a stream of the run, unless one with its id is there. Chunks sort by id."""
        ...

    def read_stream(self, run_id: str, key: str, *, after: str | None = None, limit: int = 100) -> Sequence[Chunk]:
        """The chunks behind the one with the id `after`, in the order of their ids; fewer than `limit` are all."""
        ...

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        """Ends the turn: writes the settlement, removes the lease, marks the epoch as clean.

        With `wakes`, only if it has not moved. Raises `Fenced` if `epoch` is no longer the run's.
        """
        ...

    def continue_as_new(
        self, run_id: str, *, epoch: int, wakes: int, settlement: Settlement, successor: Run, input: str | None
    ) -> Settled | WakesMoved | Exists:
        """Settles the run with `successor.id` as its successor, and creates that run, all in one transaction.

        `input` is the successor's, stored apart. `Exists` says that another writer has taken the successor's id; nothing
        is changed then. Raises `Fenced` if `epoch` is no longer the run's.
        """
        ...

    def release(self, run_id: str, *, epoch: int, now: float) -> None:
        """Gives the lease back after a turn that failed, with `due_at` now and `released_epoch = epoch`.

        The epoch is not clean, because requests may be in flight: the next owner takes over. A no-op for another epoch.
        """
        ...

    def request_cancel(self, run_id: str, *, mode: CancelMode, now: float) -> Run | None:
        """Asks an open run to end: its next turn, or the one that holds it, will see `cancel_requested`.

        Adds one to `wakes`, and makes the run due now unless a live lease is held or the run is blocked. A request to
        compensate is not weakened by a later graceful one. A run that has ended is left as it is. The record after it,
        or None if there is none.
        """
        ...

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        """Ends an open run as cancelled, at once, fencing whoever holds it; the record after it, or None if there is none.

        A run that has already ended is left as it is. Others have yet to be told: `outbox` is "terminate", due now.
        """
        ...

    def watch(self, run_id: str, watched: str, watcher: Watcher) -> Run | None:
        """Notes that a run waits for the end of this one; the record after it, or None if there is none.

        `watched` is the id of the lineage, if there is one: runs that continue one another share who waits for them.
        Adds one to `wakes`, so that a turn which is about to end the run learns of it. Twice is once.
        """
        ...

    def watchers(self, watched: str) -> Sequence[Watcher]:
        """Who waits for the end of a run, strongly consistent; `watched` as in `watch`."""
        ...

    def clear_outbox(self, run_id: str, *, epoch: int, delete_at: float | None = None) -> None:
        """Notes that everybody has been told of the run's end, and when it may go; a no-op for another epoch."""
        ...

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        """Makes a blocked run suspended, due now; any other run is left as it is. The record after it, or None."""
        ...

    def list_runs(
        self,
        workflow: str,
        *,
        outcome: Status | Literal["open"] | None = None,
        tag: str | None = None,
        where: Sequence[Condition] = (),
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        """Runs of a workflow, newest first, that meet every filter; eventually consistent."""
        ...

    def due_runs(self, *, before: float, limit: int) -> Sequence[str]:
        """Ids of runs whose `due_at` has passed, the longest overdue first; eventually consistent."""
        ...

    def runs_needing_attention(self, status: Status, *, limit: int, cursor: str | None = None) -> RunPage:
        """Runs that failed, died or are blocked; eventually consistent, `workflow` and `tags` may be empty."""
        ...

    def blocked_runs(self, *, not_under: str, limit: int) -> Sequence[str]:
        """Ids of runs that are blocked under another code version than this, the oldest first; eventually consistent."""
        ...

    def start_task(self, run_id: str, task_id: str, *, worker: str, now: float, expires_at: float) -> TaskRow:
        """Notes that a worker begins with an attempt, which is a sign of life too.

        Of one that was picked up before, the first time stays and the worker changes. One that is closed stays as it is.
        """
        ...

    def beat_task(self, run_id: str, task_id: str, *, now: float, progress: str | None) -> TaskRow:
        """Notes a sign of life; `progress` replaces what was told before, None leaves it. What is closed stays as it is.

        A row that is missing is made, to be forgotten two weeks later: callbacks are not picked up.
        """
        ...

    def close_task(self, run_id: str, task_id: str, *, reason: str, expires_at: float) -> TaskRow:
        """Notes that the result of an attempt is no longer wanted; the first reason stays."""
        ...

    def get_task(self, run_id: str, task_id: str) -> TaskRow | None:
        """What is known of an attempt, strongly consistent; None before anybody has begun with it."""
        ...

    def read_lane(self, name: str, *, tickets: int) -> LaneState | None:
        """The lane and the first so many tickets of its queue, strongly consistent; None while nobody uses it."""
        ...

    def find_ticket(self, name: str, holder: str) -> Ticket | None:
        """The ticket of one that waits, or that was granted a slot and not told yet; strongly consistent."""
        ...

    def write_lane(
        self, lane: Lane, *, expected_version: int | None, put: Sequence[Ticket] = (), remove: Sequence[Ticket] = ()
    ) -> bool:
        """Writes the lane, puts tickets in and takes others out, all or nothing; a lane that can be forgotten is deleted.

        False, and nothing is changed, if its version is not the expected one (None: there is none), or if one of the
        holders has a ticket already. True also where an earlier try by the same `lane.writer` had its effect.
        """
        ...

    def due_lanes(self, *, before: float, limit: int) -> Sequence[str]:
        """Names of lanes whose `due_at` has passed, the longest overdue first; eventually consistent."""
        ...

    def put_subscription(self, subscription: Subscription) -> None:
        """Lists an operation of a run among those that wait for an event; twice is once."""
        ...

    def delete_subscription(self, event: str, run_id: str, location: str) -> None:
        """Takes it off that list, if it is there."""
        ...

    def subscriptions(self, event: str, *, cursor: str | None = None, limit: int = 100) -> SubscriptionPage:
        """Some of those who wait for an event, strongly consistent; whoever is listed all the while is on one page."""
        ...

    def put_buffered(self, event: BufferedEvent) -> None:
        """Keeps an event, unless one of its name and id is or was kept."""
        ...

    def close_buffered(self, event: BufferedEvent) -> None:
        """Notes that somebody waited for the event: it is not given out any more, nor kept again."""
        ...

    def buffered(self, event: str, *, now: float) -> Sequence[BufferedEvent]:
        """The events of this name that are kept, the earliest first, strongly consistent."""
        ...

    def take_event(
        self, event: str, event_id: str, run_id: str, location: str, *, at: float, expires_at: float
    ) -> Taken:
        """Notes that an operation of a run has had an event, unless one of that run has; what is noted then."""
        ...

    def expired_runs(self, *, before: float, limit: int) -> Sequence[str]:
        """Ids of ended runs that owe nothing and whose `due_at` has passed, the longest ago first; eventually consistent."""
        ...

    def postpone_deletion(self, run_id: str, *, epoch: int, until: float) -> None:
        """Makes an ended run that owes nothing due at `until`; a no-op for another epoch, and for a run that is due never."""
        ...

    def mark_for_deletion(self, run_id: str, *, epoch: int, now: float) -> bool:
        """Notes that the deletion of an ended run begins: nobody reopens it any more. One that was due never is due now.

        False, and nothing is changed, for another epoch, and if the run is open, owes something or is missing.
        """
        ...

    def empty_run(self, run_id: str) -> None:
        """Deletes what is in the run's own partition, and the attempts at its remote steps, but not its record."""
        ...

    def delete_run(self, run_id: str) -> None:
        """Deletes everything about a run that has ended, its record last; the tombstones stay if a successor needs them.

        A deletion that was cut short is completed by the next; a run that is missing is left alone.
        """
        ...


class RunQueue(Protocol):
    """The FIFO queue of the orchestrator: ordered per run, at least once."""

    def send(self, envelope: Envelope) -> None:
        """Returns once the envelope is durably accepted."""
        ...


class StepQueue(Protocol):
    """The standard queues of the workers: unordered, at least once."""

    def send(self, task: StepTask, *, delay: float = 0.0) -> None:
        """Returns once the task is durably accepted, to be received after `delay` seconds (at most 900)."""
        ...


class TaskSource(Protocol):
    """The end of a workers' queue that is received from; workers outside Lambda use it, and no engine."""

    def receive(self, *, wait: float, hidden: float) -> Sequence[TaskDelivery]:
        """A task, or none after `wait` seconds; nobody else receives it for `hidden` seconds."""
        ...

    def acknowledge(self, delivery_id: str) -> None:
        """Deletes the task."""
        ...

    def hide(self, delivery_id: str, seconds: float) -> None:
        """Nobody else receives it for so many seconds from now; 0 gives it back. Nothing, if somebody else has it."""
        ...


class Signing(Protocol):
    """The secret with which tokens are signed."""

    def keys(self) -> Sequence[bytes]:
        """At least one key: the first signs, all of them verify."""
        ...


class Timers(Protocol):
    """Wakes for later: unordered, at least once, never early by more than the handler forwards."""

    def arm(self, run_id: str, due_at: float) -> None:
        """Returns once a `TimerFired` for this moment is durably accepted; at once if it has passed."""
        ...

    def send(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        """Sends an envelope outside the run's own order, after `delay` seconds (at most 900)."""
        ...


class Blobs(Protocol):
    """Values that are too large for the store. A key is never used for another value, so putting twice is one put."""

    def put(self, key: str, data: bytes) -> None:
        """Returns once the bytes are durable."""
        ...

    def get(self, key: str) -> bytes | None:
        """The bytes, or None where there are none."""
        ...

    def delete(self, prefix: str) -> None:
        """Deletes every blob whose key begins with the prefix; all blobs of a run are under `<run id>/`."""
        ...


class Texts(Protocol):
    """Payloads that come by a queue, which no other port receives from, and large ones before they are recorded."""

    def kept(self, run_id: str, text: str, *, what: str) -> str:
        """The text, after what it takes to store it is done: a large one is among the run's blobs. Raises LimitExceeded."""
        ...

    def envelope(self, envelope: Envelope) -> Envelope:
        """The envelope with what the engine itself reads of it; the body of a message goes to the mailbox as it is."""
        ...

    def task(self, task: StepTask) -> StepTask:
        """The task with its input as it was sent. Raises PayloadUnreadable."""
        ...


class PlainTexts:
    """Payloads that are stored and sent as they are."""

    def kept(self, run_id: str, text: str, *, what: str) -> str:  # noqa: ARG002 - nothing has to be done
        """The text."""
        return text

    def envelope(self, envelope: Envelope) -> Envelope:
        """The envelope."""
        return envelope

    def task(self, task: StepTask) -> StepTask:
        """The task."""
        return task


class NoBlobs:
    """The blobs of a deployment without a bucket: there are none, and none can be stored."""

    def put(self, key: str, data: bytes) -> None:  # noqa: ARG002 - it refuses everything
        """Refuses."""
        raise NotAvailable("ctx.offload without a bucket (DURABLE_BUCKET)")

    def get(self, key: str) -> bytes | None:  # noqa: ARG002 - it refuses everything
        """Finds nothing."""
        return None

    def delete(self, prefix: str) -> None:
        """Has nothing to delete."""


class NoSteps:
    """The workers of a deployment without a queue for them: there are none."""

    def send(self, task: StepTask, *, delay: float = 0.0) -> None:  # noqa: ARG002 - it refuses everything
        """Refuses."""
        raise NotAvailable("ctx.call without a queue of remote steps (DURABLE_STEPS_QUEUE_URL)")


class NoSigning:
    """The secret of a deployment that has none: no token is made or accepted."""

    def keys(self) -> Sequence[bytes]:
        """Refuses."""
        raise NotAvailable("a token without a secret (DURABLE_TOKEN_SECRET_ARN or DURABLE_TOKEN_SECRET)")


class Clock(Protocol):
    """Time, so that a test can skip it."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary point, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""
        ...


class Ids(Protocol):
    """Unique ids, so that a simulation can repeat itself."""

    def __call__(self) -> str:
        """A ULID: unique, sorts by time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Everything the engine and the client need of the world."""

    store: Store
    runs: RunQueue
    timers: Timers
    clock: Clock
    new_id: Ids
    blobs: Blobs = field(default_factory=NoBlobs)
    steps: StepQueue = field(default_factory=NoSteps)
    signing: Signing = field(default_factory=NoSigning)
    texts: Texts = field(default_factory=PlainTexts)
    public_url: str | None = None
    """Where outside parties reach the API."""
