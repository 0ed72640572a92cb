"""What operations may cost, and the book in which is written what they do cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.emulated import Emulated
    from durable.testing.counting import Counts


@dataclass(frozen=True, slots=True)
class Budget:
    """What an operation may cost."""

    requests: int
    write_units: int
    read_units: float = 0.0


def charge(number: int) -> dict[str, object]:
    """A step of an ordinary size."""
    return {"payment": f"p-{number}", "cents": number, "note": "x" * 300}


def assert_completed(world: Emulated, run_id: str) -> None:
    """Costs mean something only if the work was done."""
    with world.counter.paused():
        run = world.ports.store.get(run_id)
    if run is None or run.status != "completed":
        raise AssertionError(f"{run_id} is not completed: {run}")


class Ledger:
    """Prints what operations cost and remembers which cost too much."""

    def __init__(self, world: Emulated, budgets: Mapping[str, Budget]) -> None:
        self._world = world
        self._budgets = budgets
        self.over: list[str] = []
        self.measured: set[str] = set()
        world.counter.take()

    def measure(self, op: str, perform: Callable[[], Any]) -> Any:
        """Performs and enters the costs."""
        self._world.counter.take()
        answer = perform()
        self.enter(op, self._world.counter.take())
        return answer

    def enter(self, op: str, counts: Counts) -> None:
        """Enters costs that were counted elsewhere."""
        budget = self._budgets[op]
        self.measured.add(op)
        spent = Budget(counts.total, counts.write_units, counts.read_units)
        over = (
            spent.requests > budget.requests
            or spent.write_units > budget.write_units
            or spent.read_units > budget.read_units
        )
        line = {
            "op": op,
            "requests": spent.requests,
            "write_units": spent.write_units,
            "index_units": counts.index_units,
            "read_units": spent.read_units,
            "budget": [budget.requests, budget.write_units, budget.read_units],
        }
        print(json.dumps(line | ({"over": dict(counts.requests)} if over else {})))
        if over:
            self.over.append(op)
