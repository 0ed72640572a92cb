"""The run record: one small item that says what a run is and who may work on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from durable.model.limits import INLINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from durable.errors import ErrorInfo
    from durable.model.attributes import Attributes, AttributeValue

Status = Literal[
    "pending", "suspended", "rolling_back", "completed", "failed", "cancelled", "timed_out", "dead", "blocked"
]

CancelMode = Literal["graceful", "compensate"]
"""How a run that is asked to end goes about it: by unwinding its code, or by undoing its steps first."""

CloseMode = Literal["graceful", "compensate", "terminate"]
"""How what a run has begun elsewhere is ended with it."""

TERMINAL: Final[frozenset[Status]] = frozenset({"completed", "failed", "cancelled", "timed_out", "dead"})
ATTENTION: Final[frozenset[Status]] = frozenset({"failed", "dead", "blocked"})

EPOCH_ORIGIN: Final = 1_577_836_800
"""2020-01-01T00:00:00Z; epochs start at the milliseconds since then, so that a number never returns."""


RETRIED: Final = "retried"
"""Begins the digest of the wait that stands for a retry, and has its moment as deadline: see `retried`."""

LOST_START_SECONDS: Final = 30.0
"""A run whose first envelope is lost is found by maintenance after this time."""


def first_epoch(now: float) -> int:
    """The epoch at which a run that is created now begins, before its first turn."""
    return int((now - EPOCH_ORIGIN) * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An operation that a settled run waits for: checked, and its deadline kept, by the next turn."""

    digest: str
    """Hash of location and kind."""
    deadline: float | None


@dataclass(frozen=True, slots=True)
class Cut:
    """Part of a history that was taken back: items ordered from (epoch, n) on, of epochs up to `until`, do not count."""

    epoch: int
    n: int
    until: int

    def covers(self, order: tuple[int, int]) -> bool:
        """Whether an item with this order of record was taken back."""
        return (self.epoch, self.n) <= order and order[0] <= self.until


def retried(at: float, cuts: Iterable[Cut]) -> Wait:
    """Tells the turns after a retry when that was, and where the first of all cuts begins: `retried:<epoch>.<n>`."""
    first = min(((cut.epoch, cut.n) for cut in cuts), default=None)
    return Wait(digest=RETRIED if first is None else f"{RETRIED}:{first[0]}.{first[1]}", deadline=at)


@dataclass(frozen=True, slots=True)
class Carried:
    """Unread messages of the run before: the first turn copies them into its own mailbox."""

    run_id: str
    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Watcher:
    """A run that waits for the end of another, and the location of the operation that does."""

    run_id: str
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A snapshot of the run record."""

    id: str
    workflow: str
    version: str
    status: Status
    created_at: float
    epoch: int
    born: int
    clean_epoch: int
    writer: str
    """Token of the request that created the record: its retry recognises its own success."""
    input: str | None = None
    """JSON text; None when it is stored apart (`input_stored`) or there is no input."""
    input_stored: bool = False
    input_digest: str = ""
    tags: tuple[str, ...] = ()
    parent: str | None = None
    parent_location: str | None = None
    """Location of the parent's operation that started it: there it learns of the end."""
    watched: bool = False
    """Whether further runs wait for the end of this one."""
    lineage: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Trace context and whatever else its starter gives on: it travels with every dispatch."""
    lane: str | None = None
    """The lane that it needs a slot of, from its start to its end."""
    started_at: float | None = None
    updated_at: float | None = None
    finished_at: float | None = None
    released_epoch: int = 0
    """The last epoch whose turn failed in order and gave the lease back: nothing is charged for it."""
    lease_owner: str | None = None
    lease_until: float | None = None
    wakes: int = 0
    due_at: float | None = None
    """When maintenance looks at it, should nothing have woken it; once it has ended and owes nothing: deletes it."""
    armed: float | None = None
    waiting_for: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    waits_digest: str | None = None
    """Digest of the locations and kinds of the waits beyond those in `waits`."""
    reason: str | None = None
    """For people: what the run waits for, or why it is blocked, failed or dead."""
    fences: Mapping[int, int] = field(default_factory=dict[int, int])
    floors: Mapping[int, int] = field(default_factory=dict[int, int])
    """Epoch to n: its own turn has pruned items up to n, so its gap-free prefix starts there."""
    cuts: tuple[Cut, ...] = ()
    pruned: bool = False
    """Whether messages may have been consumed by entries that are gone: then their tombstones are looked up.

    Or at-most-once steps done: then a retry must not do them again."""
    code_version: str | None = None
    python: str | None = None
    output: str | None = None
    output_stored: bool = False
    error: ErrorInfo | None = None
    undelivered: int = 0
    late_results: int = 0
    """Results of remote attempts that had been given up: they change nothing."""
    cancel_requested: CancelMode | None = None
    ending: Status | None = None
    """What a run that is rolling back will become."""
    failed_at: tuple[str, ...] = ()
    """Keys of the entries whose failure ended the run, at most eight: a retry removes them."""
    deadline: float | None = None
    """When the run times out as a whole, seconds since 1970; known from the first settle on."""
    attributes: Attributes = field(default_factory=dict[str, "AttributeValue"])
    successor: str | None = None
    """The run that continues this one."""
    carries: Carried | None = None
    outbox: CloseMode | None = None
    """Of an ended run: others have yet to be told, and what it had begun elsewhere is to be ended so."""
    deleting: bool = False
    """Of an ended run: its deletion has begun, so it stays ended."""

    @property
    def ended(self) -> bool:
        """Whether the status is terminal."""
        return self.status in TERMINAL

    @property
    def taken_over(self) -> bool:
        """Whether the owner before this epoch has not released the run cleanly."""
        return self.epoch > self.clean_epoch + 1

    @property
    def died(self) -> bool:
        """Whether the invocation before this epoch ended without a word."""
        return self.taken_over and self.released_epoch < self.epoch - 1

    def held_at(self, now: float) -> bool:
        """Whether some invocation has the exclusive right to take turns."""
        return self.lease_until is not None and self.lease_until > now


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What the end of a turn writes into the run record; fields that are None are removed from it."""

    status: Status
    at: float
    started_at: float | None
    """None of a run whose code has not begun."""
    due_at: float | None = None
    armed: float | None = None
    waiting_for: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    waits_digest: str | None = None
    reason: str | None = None
    code_version: str | None = None
    python: str | None = None
    output: str | None = None
    output_stored: bool = False
    error: ErrorInfo | None = None
    undelivered: int = 0
    late_results: int = 0
    ending: Status | None = None
    failed_at: tuple[str, ...] = ()
    deadline: float | None = None
    outbox: CloseMode | None = None
    """Others have to be told of the end; `due_at` is when maintenance sees to it."""

    @property
    def terminal(self) -> bool:
        """Whether the run ends with it."""
        return self.status in TERMINAL


def pending_run(
    *, id: str, workflow: str, version: str, input: str | None, input_digest: str, writer: str, now: float,
    tags: tuple[str, ...] = (), parent: str | None = None, parent_location: str | None = None,
    headers: Mapping[str, str] | None = None, lane: str | None = None,
) -> tuple[Run, str | None]:  # fmt: skip
    """The record of a run that begins now, and its input where that is stored apart."""
    epoch = first_epoch(now)
    apart = input is not None and len(input.encode()) > INLINE_BYTES
    run = Run(
        id=id,
        workflow=workflow,
        version=version,
        status="pending",
        created_at=now,
        updated_at=now,
        epoch=epoch,
        born=epoch,
        clean_epoch=epoch,
        writer=writer,
        input=None if apart else input,
        input_stored=apart,
        input_digest=input_digest,
        tags=tags,
        parent=parent,
        parent_location=parent_location,
        headers=headers or {},
        lane=lane,
        due_at=now + LOST_START_SECONDS,
    )
    return run, input if apart else None
