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

SEEN_AT = {
    "highest_number": 1066,
    "fence_recomputed": 83,
    "fences_for_all": 186,
    "deaf_settle": 32,
    "silent_announce": 32,
    "no_due_on_acquire": 407,
    "unrecorded_result": 27,
    "unconfirmed_effect": 91,
    "floor_of_anyone": 281,
    "no_floor_in_the_fence": 75,
    "fences_forgotten_early": 53,
    "own_timer_missed": 1009,
    "weakened": 40,
    "unhurried": 87,
    "no_note": 186,
    "note_cleared_first": 201,
    "unconfirmed_dispatch": 21,
    "close_not_repeated": 83,
    "watched_after_looking": 193,
    "watch_unnoticed": 193,
    "late_child": 147,
    "unsure_ends_trusted": 379,
    "blocked_for_good": 50,
    "lanes_neglected": 21,
    "kept_late": 116,
    "looked_before_listed": 28,
    "answered_first": 107,
}
"""Seeds that have noticed these: looked at first. Any change of the engine may give them another meaning; then all are."""

ALL_MUTATIONS = [
    *MUTATIONS, *MUTATIONS_OF_PRUNING, *MUTATIONS_OF_ENDINGS, *MUTATIONS_OF_FAMILIES, *MUTATIONS_OF_SHARING,
]  # fmt: skip


def found_by(mutation: Mutation, stage: Stage) -> tuple[int, Violation] | None:
    """The first seed that notices the broken rule, and what it says; None if none does."""
    with pytest.MonkeyPatch.context() as patch:
        mutation.apply(patch)
        seeds = range(RARELY_ENOUGH if mutation.rarely_seen else ENOUGH)
        for seed in (SEEN_AT.get(mutation.name, 0), *seeds):
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
