"""The engine keeps its invariants over many seeds, and the simulation notices when a rule of the protocol is broken."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from durable.testing.simulation.baton import Stage
from durable.testing.simulation.simulated import Simulation
from durable.testing.simulation.workloads import WORKLOADS
from durable.testing.simulation.workloads.generated import LEAVES, TREES, Node, workload_of
from tests.simulation.mutations import Mutation
from tests.simulation.search import ALL_MUTATIONS, found_by

MANY = 120
"""Seeds of each workload: a few seconds; `make soak` and `python -m durable.testing.simulation --seeds N` run more."""

STAGE = Stage()


@pytest.fixture(scope="module")
def stage() -> Stage:
    return STAGE


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_invariant_is_violated(workload: str, stage: Stage) -> None:
    for seed in range(MANY):
        try:
            Simulation(seed, stage, workload=WORKLOADS[workload]).run()
        except Exception as failure:
            failure.add_note(f"reproduce: python -m durable.testing.simulation --workload {workload} --seed {seed}")
            raise


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_no_invariant_is_violated_in_thousands_of_seeds(stage: Stage) -> None:
    for seed in range(5_000):
        try:
            Simulation(seed, stage).run()
        except Exception as failure:
            failure.add_note(f"reproduce: python -m durable.testing.simulation --seed {seed}")
            raise


def nodes(depth: int) -> st.SearchStrategy[Node]:
    leaf = st.builds(Node, kind=st.sampled_from(sorted(set(LEAVES))), number=st.just(0))
    if depth == 0:
        return leaf
    parts = st.lists(nodes(depth - 1), min_size=1, max_size=3)
    return leaf | st.builds(Node, kind=st.sampled_from(TREES), number=st.just(0), parts=parts)


def numbered(node: Node, numbers: list[int]) -> Node:
    """The same program, in which every part has a number of its own."""
    numbers.append(len(numbers) + 1)
    parts = node.parts if node.kind in {"row", "gather", "join"} else node.parts[:1]
    return Node(node.kind, numbers[-1], [numbered(part, numbers) for part in parts])


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(program=nodes(2), seed=st.integers(0, 1_000_000))
def test_any_program_returns_what_it_would_without_faults(program: Node, seed: int) -> None:
    Simulation(seed, STAGE, workload=workload_of(numbered(program, []))).run()


def test_seeds_pick_every_workload(stage: Stage) -> None:
    assert {Simulation(seed, stage).workload.name for seed in range(120)} == set(WORKLOADS)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_seed_repeats_itself(workload: str, stage: Stage) -> None:
    traces = []
    for _ in range(2):
        simulation = Simulation(11, stage, workload=WORKLOADS[workload], traced=True)
        simulation.run()
        traces.append(simulation.outcome.trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 20


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutation",
    [pytest.param(one, id=one.name, marks=[pytest.mark.soak] if one.rarely_seen else []) for one in ALL_MUTATIONS],
)
def test_a_broken_rule_is_noticed(mutation: Mutation, stage: Stage) -> None:
    assert found_by(mutation, stage) is not None, f"nobody noticed that this no longer holds: {mutation.rule}"
