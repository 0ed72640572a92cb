"""Counts the AWS requests and DynamoDB units of each operation, indexes included, and fails where one costs more.

Prints one JSON line an operation. `units` are of a run without tags and parent, under a kilobyte. What each may cost
stands beside what is measured: requests of the ports, turns of a run, and what runs do with others.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from moto import mock_aws

from benchmarks import priced_families, priced_requests, priced_turns
from benchmarks.emulated import Emulated
from benchmarks.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.ledger import Budget
    from durable import App

    Measure = Callable[[Emulated, Ledger], None]

MEASURED: Final[Sequence[tuple[App[Any], Sequence[Measure], Mapping[str, Budget]]]] = (
    (
        priced_turns.app,
        (priced_requests.store_operations, priced_requests.ending_and_going_on, priced_requests.pruning_and_publishing),
        priced_requests.STORE,
    ),
    (priced_turns.app, (priced_turns.turns, priced_turns.remote_steps), priced_turns.TURNS),
    (priced_families.app, priced_families.MEASURED, priced_families.FAMILIES),
)


def main() -> int:
    """Measures everything; 1 if something is over its budget, or has one and was not measured."""
    wrong: list[str] = []
    with mock_aws():
        for app, parts, budgets in MEASURED:
            measured: set[str] = set()
            for part in parts:
                world = Emulated(app, stack=part.__name__.replace("_", "-"))
                ledger = Ledger(world, budgets)
                part(world, ledger)
                measured |= ledger.measured
                wrong += [f"over budget: {op}" for op in ledger.over]
            wrong += [f"not measured: {op}" for op in budgets if op not in measured]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
