"""Random programs, live with random completion order, lost writes and kills, then replayed from every prefix.

DURABLE_PROGRAMS=5000 runs more of them, DURABLE_FIRST_PROGRAM says where to begin: a failing seed is its own reproduction.
"""

from __future__ import annotations

import os
import random
from functools import partial

import pytest

from tests.properties.random_programs import program, run_program
from tests.properties.replays import check_replays
from tests.properties.virtual_engine import Ctx, message

PROGRAMS = int(os.environ.get("DURABLE_PROGRAMS", "300"))
FIRST = int(os.environ.get("DURABLE_FIRST_PROGRAM", "0"))
CHUNKS = 10


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_replay_of_a_random_program_does_what_was_done_live(chunk: int) -> None:
    for seed in range(FIRST + chunk, FIRST + PROGRAMS, CHUNKS):
        check_program(seed)


def check_program(seed: int) -> None:
    rng = random.Random(seed)
    mail = [
        message(f"m{place}", rng.choice("ab"), str(place), after=round(rng.random() * 10, 1))
        for place in range(rng.randint(0, 6))
    ]
    root = program(seed)

    async def workflow(ctx: Ctx) -> object:
        return await run_program(ctx, root)

    workflow.__name__ = f"program_{seed}"
    try:
        check_replays(workflow, seeds=range(3), mail=mail, kill=0.15)
    except Exception as error:
        error.add_note(f"program {seed}: {partial(program, seed)()!r}"[:3000])
        raise
