"""Runs seeds of the simulation: `python -m durable.testing.simulation --seeds 2000`."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field

from durable.testing.simulation.baton import Stage
from durable.testing.simulation.simulated import Simulation
from durable.testing.simulation.workloads import WORKLOADS, Workload


@dataclass(slots=True)
class Tally:
    """What many seeds came to."""

    seeds: int = 0
    calls: int = 0
    kills: int = 0
    freezes: int = 0
    failures: dict[int, str] = field(default_factory=dict[int, str])


def run_seeds(seeds: range, workload: Workload | None = None, *, stop_after: int = 10) -> Tally:
    """Runs seeds one after another, until so many have failed."""
    stage, tally = Stage(), Tally()
    for seed in seeds:
        simulation = Simulation(seed, stage, workload=workload)
        tally.seeds += 1
        try:
            simulation.run()
        except Exception as failure:  # noqa: BLE001 - whatever goes wrong in a seed is a finding
            tally.failures[seed] = f"{simulation.workload.name}: {type(failure).__name__}: {failure}"
        tally.calls += simulation.outcome.calls
        tally.kills += simulation.outcome.kills
        tally.freezes += simulation.outcome.freezes
        if len(tally.failures) >= stop_after:
            break
    return tally


def trace(seed: int, workload: Workload | None = None) -> int:
    """Runs one seed and prints all that happened."""
    simulation = Simulation(seed, Stage(), workload=workload, traced=True)
    try:
        simulation.run()
    finally:
        print(*simulation.outcome.trace, sep="\n")
    print("no violation")
    return 0


def main() -> int:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m durable.testing.simulation", description=__doc__)
    arguments.add_argument("--seeds", type=int, default=500, help="how many seeds (default: 500)")
    arguments.add_argument("--first", type=int, default=0, help="the first of them")
    arguments.add_argument("--seed", type=int, help="run this one and print what happens")
    arguments.add_argument("--workload", choices=[*WORKLOADS], help="what the run does, instead of what the seed picks")
    options = arguments.parse_args()
    workload = WORKLOADS.get(options.workload)
    if options.seed is not None:
        return trace(options.seed, workload)
    began = time.perf_counter()
    tally = run_seeds(range(options.first, options.first + options.seeds), workload)
    took = time.perf_counter() - began
    print(
        f"{tally.seeds} seeds in {took:.1f} s ({tally.seeds / took:.0f} a second): {tally.calls} port calls, "
        f"{tally.kills} kills, {tally.freezes} freezes, {len(tally.failures)} failures"
    )
    for seed, failure in tally.failures.items():
        picked = "" if workload is None else f" --workload {workload.name}"
        print(f"{failure}\n    reproduce: python -m durable.testing.simulation --seed {seed}{picked}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
