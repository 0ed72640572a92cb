"""Plays a workflow live, with kills, and compares every replay from every prefix of its history."""

from __future__ import annotations

import random
from collections.abc import Sequence

from durable.execution import Execution
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from tests.properties.virtual_engine import Chances, Event, Opened, Store, VirtualEngine, Workflow, open_run


def replayed(workflow: Workflow, history: Sequence[Entry], *, slow: bool = False) -> Opened:
    """The run after it was replayed from this history, unwound."""
    opened = open_run(workflow, history, slow=slow)
    try:
        opened.execution.advance()
        opened.pending = sorted(op.key for op in opened.execution.take())
    finally:
        opened.execution.unwind()
    return opened


def engine_for(
    workflow: Workflow, seed: int = 0, store: Store | None = None, *, kill: float = 0.0, suspend: float = 0.3
) -> VirtualEngine:
    """An engine whose chances all follow from the seed."""
    return VirtualEngine(workflow, random.Random(seed), store, Chances(kill=kill, suspend=suspend))


def play(
    workflow: Workflow,
    seed: int = 0,
    *,
    mail: Sequence[StoredMessage] = (),
    kill: float = 0.0,
    suspend: float = 0.3,
) -> tuple[str, VirtualEngine]:
    """The result of a live run and its engine."""
    engine = engine_for(workflow, seed, Store(mail=list(mail)), kill=kill, suspend=suspend)
    return engine.run(), engine


def check_replays(
    workflow: Workflow, *, seeds: Sequence[int] = range(20), mail: Sequence[StoredMessage] = (), kill: float = 0.12
) -> set[str]:
    """Live with random completion order and kills, then replays from every prefix; returns the different results."""
    results: set[str] = set()
    for seed in seeds:
        result, engine = play(
            workflow, seed, mail=mail, kill=kill if seed % 3 else 0.0, suspend=0.3 if seed % 2 else 0.0
        )
        results.add(result)
        check_every_prefix(workflow, engine, result, f"seed {seed}")
    return results


def check_every_prefix(workflow: Workflow, engine: VirtualEngine, result: str, where: str) -> None:
    history = engine.store.valid()
    assert history == sorted(history, key=lambda entry: entry.order)
    later: Opened | None = None
    for length in range(len(history), -1, -1):
        fast = replayed(workflow, history[:length])
        slow = replayed(workflow, history[:length], slow=True)
        assert fast.ctx.trace == slow.ctx.trace, difference(where, length, fast.ctx.trace, slow.ctx.trace)
        assert (fast.result, fast.pending) == (slow.result, slow.pending), (where, length)
        if length == len(history):
            assert fast.result == result, (where, fast.result, result)
            for entry in fast.execution.skipped:
                assert entry.kind == "step", (where, "a wait was recorded and never seen", entry)
            for trace, _ in engine.turns:
                expect_prefix(trace, fast, f"{where}, a live turn")
        elif later is not None:
            assert fast.result in {"", result}, (where, length)
            expect_prefix(fast.ctx.trace, later, f"{where}, replay of {length}")
        later = fast


def expect_prefix(trace: list[Event], later: Opened, where: str) -> None:
    """A shorter replay does the same as a longer one, as far as it goes; sealed iterations are left out."""
    short = [event for event in trace if not is_sealed(later.execution, event[0])]
    long = [event for event in later.ctx.trace if not is_sealed(later.execution, event[0])]
    assert short == long[: len(short)], difference(where, len(short), short, long)


def is_sealed(execution: Execution, scope: str) -> bool:
    bracket = scope.find("[")
    while bracket >= 0:
        loop, index = scope[:bracket], int(scope[bracket + 1 : scope.index("]", bracket)])
        if loop in execution.journal.sealed or index < execution.journal.progress.get(loop, 0):
            return True
        bracket = scope.find("[", bracket + 1)
    return False


def difference(where: str, length: int, one: list[Event], other: list[Event]) -> str:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return f"{where} ({length}): at {place} {one[max(0, place - 3) : place + 5]} and {other[max(0, place - 3) : place + 5]}"
    return f"{where} ({length}): {len(one)} events and {len(other)}: {one[len(other) :][:5]} {other[len(one) :][:5]}"
