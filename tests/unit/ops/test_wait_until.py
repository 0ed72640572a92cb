"""Waiting for a condition: one step and one sleep a round, and progress as a loop has it."""

from __future__ import annotations

from typing import Any

from durable.errors import WaitTimeout
from durable.options import MISSING
from durable.values import Break, Continue
from tests.properties.replays import check_replays, play, replayed
from tests.properties.virtual_engine import Ctx


def up_to_fifty(n: int) -> Break[str] | Continue[int]:
    return Break(f"at {n}") if n == 50 else Continue(n + 1)


def never() -> str | None:
    return None


async def fifty(ctx: Ctx) -> Any:
    return await ctx.wait_until("fifty", up_to_fifty, 25)


async def nothing(ctx: Ctx) -> Any:
    try:
        return await ctx.wait_until("nothing", never, MISSING, timeout=5)
    except WaitTimeout as timeout:
        return str(timeout), round(ctx.now())


def test_rounds_are_steps_and_sleeps_with_progress_every_twenty() -> None:
    result, engine = play(fifty, suspend=0.0)
    assert result == "returned 'at 50'"
    history = engine.store.valid()
    assert [entry.key for entry in history[:3]] == ["fifty[0]/fifty", "fifty[0]/sleep", "fifty[1]/fifty"]
    assert [entry.key for entry in history if entry.kind == "loop"] == ["fifty~20", "fifty"]
    assert replayed(fifty, history).result == result


def test_the_deadline_survives_progress() -> None:
    result, engine = play(nothing, suspend=0.0)
    assert result == "returned ('the wait at \"nothing\" reached its deadline', 1000005)"
    assert sum(entry.kind == "step" for entry in engine.store.valid()) >= 4


def test_every_prefix_replays() -> None:
    assert check_replays(fifty, seeds=range(2)) == {"returned 'at 50'"}
    check_replays(nothing, seeds=range(4))
