"""The ports: everything the engine asks of the world, with the promises that adapters keep.

Every method is one atomic effect. A method that raises `StoreUnavailable` may or may not have had its effect;
repeating it with the same arguments is always safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.model.entry import Entry
    from durable.model.envelope import Envelope
    from durable.model.message import StoredMessage
    from durable.model.run import Run, Settlement, Status

# Answers of the store


@dataclass(frozen=True, slots=True)
class Created:
    """The run did not exist and does now (or an earlier try of the same writer created it)."""

    run: Run


@dataclass(frozen=True, slots=True)
class Exists:
    """The id is taken: the run that has it."""

    run: Run


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The idempotency key is taken: the id of the run that it started."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Acquired:
    """The caller owns the run for one epoch, `run.epoch`."""

    run: Run


@dataclass(frozen=True, slots=True)
class Held:
    """Another invocation holds a live lease."""

    run: Run


@dataclass(frozen=True, slots=True)
class NotRunnable:
    """The run has ended, or is blocked under the code that asks."""

    run: Run


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such run."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The turn's end is recorded and the lease is gone."""


@dataclass(frozen=True, slots=True)
class WakesMoved:
    """Something asked for a turn meanwhile: look at the mailbox again, then settle with this count."""

    wakes: int


Payload = Literal["input", "output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a run's partition, in key order: history, then payloads, then mailbox."""

    entries: Sequence[Entry] = ()
    messages: Sequence[StoredMessage] = ()
    payloads: Mapping[Payload, str] = field(default_factory=dict[Payload, str])
    cursor: str | None = None
    """Where the next page starts; None after the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A row of a listing. `outcome` is the terminal status, or None while the run is open."""

    id: str
    workflow: str
    created_at: float
    outcome: Status | None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Part of a listing, newest first."""

    runs: Sequence[RunSummary]
    cursor: str | None = None


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

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        """Replaces the fences. Raises `Fenced` if `epoch` is no longer the run's."""
        ...

    def load(self, run_id: str, *, cursor: str | None = None, mailbox_only: bool = False) -> Page:
        """One page of the run's history and mailbox, strongly consistent; pages are read one after another."""
        ...

    def put_entry(self, run_id: str, entry: Entry) -> None:
        """Writes an entry where there is none, or over one of the same or an older epoch. Raises `Fenced` otherwise."""
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

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        """Ends the turn: writes the settlement, removes the lease, marks the epoch as clean.

        With `wakes`, only if it has not moved. Raises `Fenced` if `epoch` is no longer the run's.
        """
        ...

    def release(self, run_id: str, *, epoch: int, now: float) -> None:
        """Gives the lease back after a turn that failed, with `due_at` now and `released_epoch = epoch`.

        The epoch is not clean, because requests may be in flight: the next owner takes over. A no-op for another epoch.
        """
        ...

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        """Ends an open run as cancelled, at once, fencing whoever holds it; the record after it, or None if there is none.

        A run that has already ended is left as it is.
        """
        ...

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        """Makes a blocked run suspended, due now; any other run is left as it is. The record after it, or None."""
        ...

    def list_runs(
        self,
        workflow: str,
        *,
        outcome: Status | Literal["open"] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        """Runs of a workflow, newest first; eventually consistent."""
        ...

    def due_runs(self, *, before: float, limit: int) -> Sequence[str]:
        """Ids of runs whose `due_at` has passed, the longest overdue first; eventually consistent."""
        ...

    def runs_needing_attention(self, status: Status, *, limit: int, cursor: str | None = None) -> RunPage:
        """Runs that failed, died or are blocked; eventually consistent, `workflow` and `tags` may be empty."""
        ...


class RunQueue(Protocol):
    """The FIFO queue of the orchestrator: ordered per run, at least once."""

    def send(self, envelope: Envelope) -> None:
        """Returns once the envelope is durably accepted."""
        ...


class Timers(Protocol):
    """Wakes for later: unordered, at least once, never early by more than the handler forwards."""

    def arm(self, run_id: str, due_at: float) -> None:
        """Returns once a `TimerFired` for this moment is durably accepted; at once if it has passed."""
        ...

    def send(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        """Sends an envelope outside the run's own order, after `delay` seconds (at most 900)."""
        ...


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
