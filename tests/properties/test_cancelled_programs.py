"""Random programs that are cancelled at a random moment, with kills and lost writes, then replayed from every prefix.

DURABLE_PROGRAMS=5000 runs more of them, DURABLE_FIRST_PROGRAM says where to begin: a failing seed is its own reproduction.
"""

from __future__ import annotations

import os
import random
from functools import partial
from typing import Any

import pytest
from pydantic_core import to_json

from durable.errors import Deadlock
from durable.model.entry import Entry
from tests.properties.random_programs import program, run_program
from tests.properties.replays import check_every_prefix
from tests.properties.virtual_engine import Chances, Ctx, Killed, Store, Turn, VirtualEngine, message

PROGRAMS = int(os.environ.get("DURABLE_PROGRAMS", "200"))
FIRST = int(os.environ.get("DURABLE_FIRST_PROGRAM", "0"))
CHUNKS = 10


class CancellingTurn(Turn):
    """Cancels the run once, when the loop is idle and everything is delivered."""

    def ready_wait(self) -> Any:
        if not self.known and not self.execution.cancelled and self.rng.random() < 0.15:
            self.cancel()
        return None if self.execution.finished else super().ready_wait()

    def cancel(self) -> None:
        self.n += 1
        at = max(self.execution.time, self.store.clock)
        keys = to_json(self.execution.cancellable()).decode()
        entry = Entry(location="cancel", mark="^", kind="cancel", epoch=self.store.epoch, n=self.n, at=at, value=keys)
        self.write(entry)
        self.may_die()
        self.execution.cancel(entry)
        self.collect()
        if self.execution.finished:
            self.steps, self.waits, self.known = [], [], []

    def skip_time(self) -> None:
        if not self.execution.finished:
            super().skip_time()


class CancellingEngine(VirtualEngine):
    def run(self, max_turns: int = 10_000) -> str:
        for _ in range(max_turns):
            turn = CancellingTurn(self)
            try:
                if turn.play():
                    return turn.opened.result
            except Killed:
                self.store.dirty = True
            finally:
                self.turns.append((turn.opened.ctx.trace, turn.opened.execution))
                self.reports += turn.execution.unwind()
        raise AssertionError("the run does not end")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_replay_of_a_cancelled_program_does_what_was_done_live(chunk: int) -> None:
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
    for again in range(3):
        chances = Chances(kill=0.15 if again else 0.0)
        engine = CancellingEngine(workflow, random.Random(again), Store(mail=list(mail)), chances)
        try:
            check_every_prefix(workflow, engine, engine.run(), f"seed {again}")
        except Deadlock:
            pass  # a random program may wait for itself
        except Exception as error:
            error.add_note(f"program {seed}: {partial(program, seed)()!r}"[:3000])
            raise
