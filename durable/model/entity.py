"""What is sent to an entity, what it answers, and what it keeps: the state behind one key, and the run that holds it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from durable.errors import ErrorInfo, InvalidName
from durable.model.ids import PREFIX_OF_ENTITIES, check_name, check_run_id
from durable.model.limits import RUN_ID_BYTES

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.run import Run

SERVED: Final = "operations"
"""Location of the loop in which an entity performs its operations."""

CALL: Final = "call"
"""Name of the messages that ask an entity for something."""

READ: Final = ""
"""The operation that changes nothing and gives the state."""

NAME_CHARS: Final = 64
"""Longest name of an entity: its runs' ids have at most 128 characters, and need the rest for the key."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:@=-][A-Za-z0-9._:@=+-]*")
_HASHED: Final = "+"
"""Begins what stands for a key that cannot be part of a run id; no key is taken as it is that begins so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who waits for an answer: an operation of a run, or a client, which looks for it under the message's id."""

    run_id: str | None = None
    location: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityCall:
    """The body of a message to an entity."""

    operation: str
    arguments: Any = None
    """JSON data: `{"args": [...], "kwargs": {...}}`."""
    caller: Caller | None = None
    """Nobody waits where it is None."""
    delay: float | None = None
    """Seconds after its arrival at which it is performed."""
    timer: str | None = None
    """Names the delayed operation: it replaces one of that name."""

    def to_text(self) -> str:
        """JSON text."""
        return _CALL.dump_json(self, exclude_defaults=True).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a call."""

    id: str
    """That of the message which asked."""
    caller: Caller
    value: Any = None
    """JSON data."""
    error: ErrorInfo | None = None
    of_state: bool = False
    """Whether the value is the state itself, which is recorded beside it."""

    @property
    def value_text(self) -> str:
        """The value as JSON text."""
        return to_json(self.value).decode()

    def to_text(self) -> str:
        """JSON text."""
        return _ANSWER.dump_json(self, exclude_defaults=True).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """An operation to be performed later."""

    due_at: float
    operation: str
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What an entity keeps after each operation, with the answer that it owes for that one."""

    version: int
    state: Any
    """JSON data, as that version of the class has it."""
    timers: Mapping[str, Timer] = field(default_factory=dict[str, Timer])
    answer: Answer | None = None

    @property
    def state_text(self) -> str:
        """The state as JSON text."""
        return to_json(self.state).decode()

    @property
    def next_timer(self) -> str | None:
        """The name of the timer that is due first."""
        return min(self.timers, key=lambda name: (self.timers[name].due_at, name), default=None)

    def to_text(self) -> str:
        """JSON text."""
        return _HELD.dump_json(self, exclude_defaults=True).decode()


_CALL: TypeAdapter[EntityCall] = TypeAdapter(EntityCall)
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
_HELD: TypeAdapter[Held] = TypeAdapter(Held)


def call_from(text: str) -> EntityCall:
    """Reads what `to_text` wrote; raises a ValueError for anything else."""
    return _CALL.validate_json(text)


def answer_from(text: str) -> Answer:
    """Reads what `to_text` wrote; raises a ValueError for anything else."""
    return _ANSWER.validate_json(text)


def held_from(text: str | None) -> Held:
    """Reads what `to_text` wrote; raises a ValueError for anything else."""
    return _HELD.validate_json(text or "")


def data_of(text: str) -> Any:
    """JSON data of a text."""
    return from_json(text)


def check_entity_name(name: str) -> str:
    """Gives the name back, or refuses one that could not be part of a run id and of a channel."""
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS:
        raise InvalidName("entity name", name, f"letters, digits and _ . - only, {NAME_CHARS} characters at most")
    return name


def workflow_of(name: str) -> str:
    """The workflow that the runs of an entity have."""
    return f"{PREFIX_OF_ENTITIES}{name}"


def entity_run_id(name: str, key: str) -> str:
    """The run that holds the entity of this key: the same for the same key, and no other key's.

    A key that is too long or has characters which an id may not have is hashed.
    """
    check_name("entity key", key)
    whole = f"{workflow_of(name)}:{key}"
    if _PLAIN.fullmatch(key) and len(whole) <= RUN_ID_BYTES:
        return check_run_id(whole)
    return check_run_id(f"{workflow_of(name)}:{_HASHED}{sha256(key.encode()).hexdigest()[:32]}")


def is_held(run: Run, entry: Entry) -> bool:
    """Whether the entry is what an entity has kept, and not the progress of some other loop."""
    of_entity = run.workflow.startswith(PREFIX_OF_ENTITIES)
    return of_entity and entry.location == SERVED and entry.mark.startswith("~")
