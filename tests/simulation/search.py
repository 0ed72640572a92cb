"""Looks for the seed at which the simulation notices each broken rule: `python -m tests.simulation.search [NAME ...]`."""

import argparse
import sys
import time

import pytest

from durable.testing.simulation.baton import Stage
from durable.testing.simulation.simulated import Simulation
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads import WORKLOADS
from tests.simulation.mutations import MUTATIONS, Mutation
from tests.simulation.mutations_of_endings import MUTATIONS_OF_ENDINGS
from tests.simulation.mutations_of_families import MUTATIONS_OF_FAMILIES
from tests.simulation.mutations_of_pruning import MUTATIONS_OF_PRUNING
from tests.simulation.mutations_of_sharing import MUTATIONS_OF_SHARING

ENOUGH = 700
"""Every mutation is noticed long before this seed, except those that are rarely seen."""
RARELY_ENOUGH = 3_000

ALL_MUTATIONS = [
    *MUTATIONS, *MUTATIONS_OF_PRUNING, *MUTATIONS_OF_ENDINGS, *MUTATIONS_OF_FAMILIES, *MUTATIONS_OF_SHARING,
]  # fmt: skip


def found_by(mutation: Mutation, stage: Stage) -> tuple[int, Violation] | None:
    """The first seed that notices the broken rule, and what it says; None if none does."""
    with pytest.MonkeyPatch.context() as patch:
        mutation.apply(patch)
        for seed in range(RARELY_ENOUGH if mutation.rarely_seen else ENOUGH):
            try:
                Simulation(seed, stage, workload=WORKLOADS[mutation.workload], store=mutation.store).run()
            except Violation as violation:
                return seed, violation
    return None


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.simulation.search", description=__doc__)
    arguments.add_argument("names", nargs="*", help="which of them (default: all)")
    names = arguments.parse_args().names
    chosen = [one for one in ALL_MUTATIONS if not names or one.name in names]
    stage, missed = Stage(), 0
    for mutation in chosen:
        began = time.perf_counter()
        found = found_by(mutation, stage)
        missed += found is None
        outcome = "MISSED" if found is None else f"found by seed {found[0]}"
        took = time.perf_counter() - began
        print(f"{mutation.name:<28}{mutation.workload:<12}{outcome:<20}{took:6.1f} s  {mutation.rule}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} broken rules were noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
