"""What can be tuned about turns."""

from __future__ import annotations

from dataclasses import dataclass

from durable.engine.fencing import FENCES_KEPT
from durable.model.limits import DEAD_TURNS


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Times are in seconds."""

    parallel_runs: int = 10
    """Runs of one batch that proceed side by side; 1 means in the calling thread."""
    parallel_steps: int = 64
    """Steps of one run that proceed side by side; the others wait their turn."""
    short_wait: float = 1.0
    """A wait that ends within this time is waited for in place."""
    reserve: float = 5.0
    """What is kept of an invocation's time for recording results and settling."""
    lease_margin: float = 5.0
    """How long a lease outlives its invocation: requests in flight, and clocks that differ."""
    watch: float = 2.0
    """How often the run record is looked at while a step runs and a message could decide something."""
    dead_turns: int = DEAD_TURNS
    """Turns in a row that may die without a result before the run is given up."""
    prune_from: int = 50
    """Obsolete items from which on a turn prunes its history while it goes on; fewer are left to the next turn."""
    fences_kept: int = FENCES_KEPT
    """Old fences that are not worth a request; more are forgotten together, so that the run record stays small."""
    cached_entries: int = 50_000
    """History entries that a warm container keeps, over all its runs; 0 keeps none."""

    def reserve_of(self, remaining: float) -> float:
        """The reserve of an invocation: never more than a fifth of its time, so that short functions can work too."""
        return min(self.reserve, remaining / 5)
