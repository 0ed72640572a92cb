"""The engine keeps its invariants over many seeds, and the simulation notices when a rule of the protocol is broken."""

import pytest

from durable.testing.simulation.baton import Stage
from durable.testing.simulation.invariants import Violation
from durable.testing.simulation.simulated import Simulation
from tests.simulation.mutations import MUTATIONS, Mutation

MANY = 150
"""A few seconds; `make soak` and `python -m durable.testing.simulation --seeds N` run more."""
ENOUGH = 700
"""Every mutation is noticed long before this seed."""


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage()


def test_no_invariant_is_violated(stage: Stage) -> None:
    for seed in range(MANY):
        try:
            Simulation(seed, stage).run()
        except Exception as failure:
            failure.add_note(f"reproduce: python -m durable.testing.simulation --seed {seed}")
            raise


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_no_invariant_is_violated_in_thousands_of_seeds(stage: Stage) -> None:
    for seed in range(MANY, 5_000):
        Simulation(seed, stage).run()


def test_a_seed_repeats_itself(stage: Stage) -> None:
    traces = []
    for _ in range(2):
        simulation = Simulation(11, stage, traced=True)
        simulation.run()
        traces.append(simulation.outcome.trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 20


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_broken_rule_is_noticed(mutation: Mutation, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.apply(monkeypatch)
    for seed in range(ENOUGH):
        try:
            Simulation(seed, stage, store=mutation.store).run()
        except Violation:
            return
    pytest.fail(f"{ENOUGH} seeds did not notice that this no longer holds: {mutation.rule}")
