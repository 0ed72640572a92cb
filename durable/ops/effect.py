"""Effects on other runs that the code does not wait for: recorded first, then performed, then the code goes on.

| state    | history at the location | what happens                                                             |
|----------|-------------------------|--------------------------------------------------------------------------|
| new      | nothing                 | the engine records it, then performs it, then lets the code go on        |
| recorded | an entry                | after a take-over the engine performs it again, with the same ids; the code goes on |
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from durable.model.limits import NAME_BYTES
from durable.ops.operation import Operation


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells one performance of an operation from another: ids are made of it."""

    epoch: int
    """That of the turn that records the operation."""
    retried: int | None
    """That of the latest retry of the run, if there was one."""

    def message_id(self, sender: str, location: str) -> str:
        """The id of what the operation at a location sends: repeating the performance repeats the id."""
        whole = f"{sender}:{location}:{self.epoch}"
        if len(whole) <= NAME_BYTES and whole.isascii() and whole.isprintable() and " " not in whole:
            return whole
        return f"{sender}:{sha256(whole.encode()).hexdigest()[:32]}"


class EffectOperation(Operation):
    """An operation whose record says all that it takes to perform its effect, and to perform it again."""

    __slots__ = ()

    def record_text(self, stamp: Stamp) -> str:
        """The value of the entry that records it, as JSON text."""
        raise NotImplementedError
