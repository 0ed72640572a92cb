"""What travels through the queues: what to look at, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from durable.model.message import MessageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A run was created. Every body is unique (`id`), because FIFO queues drop equal bodies for five minutes."""

    run_id: str
    id: str
    type: Literal["start"] = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSpec:
    """The run that a message starts where there is none."""

    workflow: str
    version: str
    input: str | None
    """JSON text."""
    tags: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    lane: str | None = None
    """The lane that the run needs a slot of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """A message for a run's mailbox; the queue's accepting it is its durable acceptance."""

    run_id: str
    id: str
    """The message's id: the same id is consumed once."""
    name: str
    body: str
    kind: MessageKind = "signal"
    arrived_at: float | None = None
    """When it was accepted first, of one that is led on to the run that continues the one it was sent to."""
    sequence: str = ""
    """Its place among messages of that moment."""
    start: StartSpec | None = None
    """Creates the run if it does not exist: start and message are one intention."""
    type: Literal["message"] = "message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Take a turn now."""

    run_id: str
    id: str
    reason: str
    type: Literal["wake"] = "wake"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired:
    """Take a turn at `due_at` (seconds since 1970); whoever gets it early sends it on for the rest."""

    run_id: str
    due_at: float
    id: str
    type: Literal["timer"] = "timer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pump:
    """Look at a lane: slots may be free, or its rate allow more."""

    lane: str
    id: str
    type: Literal["pump"] = "pump"

    @property
    def run_id(self) -> str:
        """Not a run's: names the lane wherever envelopes are told apart by run."""
        return f"lane:{self.lane}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """An event for every run that waits for it, and for the workflows that it starts."""

    event: str
    id: str
    body: str
    at: float
    """When it was accepted, seconds since 1970."""
    cursor: str | None = None
    """Where the fan-out goes on, of one that is too large for one invocation."""
    matched: bool = False
    """Whether somebody waited for it among those before the cursor."""
    buffer: float = 0.0
    """For how many seconds it is kept for waiters that come late, if nobody waits for it now."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    type: Literal["publish"] = "publish"

    @property
    def run_id(self) -> str:
        """Not a run's: names the event wherever envelopes are told apart by run."""
        return f"event:{self.event}"


Envelope = Start | Deliver | Wake | TimerFired | Pump | Publish

_ADAPTER: TypeAdapter[Envelope] = TypeAdapter(Annotated[Envelope, Field(discriminator="type")])


def to_body(envelope: Envelope) -> str:
    """The text of a queue message."""
    return _ADAPTER.dump_json(envelope).decode()


def from_body(body: str) -> Envelope:
    """Reads a queue message; raises pydantic's ValidationError (a ValueError) for anything else."""
    return _ADAPTER.validate_json(body)
