"""Why a turn stops performing: what is left to do is to settle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.engine.stopping import Ending
    from durable.ops.continuation import ContinuationOperation
    from durable.ops.operation import WaitOperation


@dataclass(frozen=True, slots=True)
class Ended:
    """The workflow returned or raised."""


@dataclass(frozen=True, slots=True)
class Quiescent:
    """Nothing is being performed and no wait is ready: the run sleeps until `due_at`, or until a message comes."""

    waits: Sequence[WaitOperation]
    due_at: float | None


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """There is work that wants the whole time of a fresh invocation."""

    waits: Sequence[WaitOperation]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run's code goes no further, whatever it waits for."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Continues:
    """The run ends here and goes on as another one."""

    operation: ContinuationOperation


Pause: TypeAlias = Ended | Quiescent | OutOfTime | Stopped | Continues
