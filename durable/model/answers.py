"""What the store answers, and the rows that it lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.model.attributes import Attributes, AttributeValue
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run, Status


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
class Refused:
    """A transaction was refused as a whole: nothing of it is written."""

    item: int | None
    """The index of the author's item that it failed at; None where no single one is to blame."""
    reason: str


@dataclass(frozen=True, slots=True)
class WakesMoved:
    """Something asked for a turn meanwhile: look at the mailbox again, then settle with this count."""

    wakes: int
    run: Run
    """The record as it is: a cancellation may have been requested."""


Payload = Literal["input", "output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a run's partition, in key order: history, payloads, kept compensations, mailbox."""

    entries: Sequence[Entry] = ()
    messages: Sequence[StoredMessage] = ()
    payloads: Mapping[Payload, str] = field(default_factory=dict[Payload, str])
    kept: Sequence[Entry] = ()
    """Entries that were pruned and can still be undone; with `mailbox_only` they are not read."""
    cursor: str | None = None
    """Where the next page starts; None after the last."""
    unreadable: str | None = None
    """Why something of the history cannot be read; None where all of it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A row of a listing. `outcome` is the terminal status, or None while the run is open."""

    id: str
    workflow: str
    created_at: float
    outcome: Status | None
    tags: tuple[str, ...] = ()
    attributes: Attributes = field(default_factory=dict[str, "AttributeValue"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Part of a listing, newest first."""

    runs: Sequence[RunSummary]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a stream."""

    id: str
    text: str
