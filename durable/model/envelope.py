"""What travels through the queues: a run id and the reason to look at the run."""

from __future__ import annotations

from dataclasses import dataclass
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


Envelope = Start | Deliver | Wake | TimerFired

_ADAPTER: TypeAdapter[Envelope] = TypeAdapter(Annotated[Envelope, Field(discriminator="type")])


def to_body(envelope: Envelope) -> str:
    """The text of a queue message."""
    return _ADAPTER.dump_json(envelope).decode()


def from_body(body: str) -> Envelope:
    """Reads a queue message; raises pydantic's ValidationError (a ValueError) for anything else."""
    return _ADAPTER.validate_json(body)
