"""A retried block: rounds that failed are sealed by their progress, the others replay as they were."""

from __future__ import annotations

from typing import Any

from durable.errors import NonRetryableError, StepFailed
from tests.properties.replays import check_replays, play, replayed
from tests.properties.virtual_engine import Ctx


def reject_first(n: int) -> int:
    if n < 2:
        raise ValueError(f"{n} is too few")
    return n


def never(n: int) -> int:
    raise NonRetryableError(n)


def counting() -> Any:
    rounds: list[int] = []

    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx) -> int:
            await ctx.sleep(1)
            rounds.append(round(ctx.now()))
            return await ctx.step(reject_first, round(ctx.now()) - 1_000_001)

        return await ctx.retrying("again", body, 5)

    return workflow, rounds


def test_failed_rounds_have_progress_and_are_not_executed_again() -> None:
    workflow, rounds = counting()
    result, engine = play(workflow, suspend=0.0)
    assert result == "returned 2"
    keys = [entry.key for entry in engine.store.valid()]
    assert keys == [
        "again[0]/sleep", "again[0]/reject_first", "again~1",
        "again[1]/sleep#0", "again[1]/sleep", "again[1]/reject_first",
    ]  # fmt: skip
    rounds.clear()
    assert replayed(workflow, engine.store.valid()).result == "returned 2"
    assert len(rounds) == 1


def test_every_prefix_replays() -> None:
    workflow, _ = counting()
    assert check_replays(workflow, seeds=range(6)) <= {"returned 2", "returned 3", "returned 4", "returned 5"}


def test_the_last_error_is_raised_when_no_round_is_left() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx) -> int:
            return await ctx.step(reject_first, 0)

        try:
            return await ctx.retrying("again", body, 2)
        except StepFailed as failed:
            return str(failed.error)

    result, engine = play(workflow, suspend=0.0)
    assert "0 is too few" in result
    assert [entry.key for entry in engine.store.valid() if entry.kind == "loop"] == ["again~1", "again~2"]


def test_what_is_not_retryable_ends_it() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def body(ctx: Ctx) -> int:
            raise NonRetryableError("said the code")

        return await ctx.retrying("again", body, 9)

    assert play(workflow)[0] == "raised NonRetryableError said the code"
