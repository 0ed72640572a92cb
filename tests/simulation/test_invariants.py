"""The engine keeps its invariants over many seeds, and the simulation notices when a rule of the protocol is broken."""

import pytest

from durable.testing.simulation.baton import Stage
from durable.testing.simulation.simulated import Simulation
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads import WORKLOADS
from tests.simulation.mutations import MUTATIONS, Mutation
from tests.simulation.mutations_of_endings import MUTATIONS_OF_ENDINGS
from tests.simulation.mutations_of_pruning import MUTATIONS_OF_PRUNING

MANY = 60
"""Seeds of each workload: a few seconds; `make soak` and `python -m durable.testing.simulation --seeds N` run more."""
ENOUGH = 700
"""Every mutation is noticed long before this seed, except those that are rarely seen."""
RARELY_ENOUGH = 3_000

ALL_MUTATIONS = [*MUTATIONS, *MUTATIONS_OF_PRUNING, *MUTATIONS_OF_ENDINGS]


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage()


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_invariant_is_violated(workload: str, stage: Stage) -> None:
    for seed in range(MANY):
        try:
            Simulation(seed, stage, workload=WORKLOADS[workload]).run()
        except Exception as failure:
            failure.add_note(f"reproduce: python -m durable.testing.simulation --workload {workload} --seed {seed}")
            raise


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_no_invariant_is_violated_in_thousands_of_seeds(stage: Stage) -> None:
    for seed in range(5_000):
        try:
            Simulation(seed, stage).run()
        except Exception as failure:
            failure.add_note(f"reproduce: python -m durable.testing.simulation --seed {seed}")
            raise


def test_seeds_pick_every_workload(stage: Stage) -> None:
    assert {Simulation(seed, stage).workload.name for seed in range(50)} == set(WORKLOADS)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_seed_repeats_itself(workload: str, stage: Stage) -> None:
    traces = []
    for _ in range(2):
        simulation = Simulation(11, stage, workload=WORKLOADS[workload], traced=True)
        simulation.run()
        traces.append(simulation.outcome.trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 20


@pytest.mark.parametrize(
    "mutation",
    [pytest.param(one, id=one.name, marks=[pytest.mark.soak] if one.rarely_seen else []) for one in ALL_MUTATIONS],
)
def test_a_broken_rule_is_noticed(mutation: Mutation, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.apply(monkeypatch)
    seeds = RARELY_ENOUGH if mutation.rarely_seen else ENOUGH
    for seed in range(seeds):
        try:
            Simulation(seed, stage, workload=WORKLOADS[mutation.workload], store=mutation.store).run()
        except Violation:
            return
    pytest.fail(f"{seeds} seeds did not notice that this no longer holds: {mutation.rule}")
