"""What passes between the local stack and the process of a function, and how an invocation can end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Returned:
    """The handler's answer."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised; its process lives on."""

    type: str
    message: str
    trace: str


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended in the middle of the invocation."""

    pid: int
    code: int
    """As subprocess has it: negative for a signal."""

    @property
    def how(self) -> str:
        """For people."""
        return f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The invocation took longer than the function's timeout, and its process was killed."""

    pid: int
    seconds: float


Outcome: TypeAlias = Returned | Raised | Died | TimedOut
