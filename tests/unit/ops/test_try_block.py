"""A try block: failures of its operations are a value, faults of its code are not."""

from __future__ import annotations

from typing import Any

from durable.values import Failed
from tests.properties.replays import check_replays, play
from tests.properties.virtual_engine import Ctx


def refuse(n: int) -> int:
    raise ValueError(f"not {n}")


async def refused(ctx: Ctx) -> int:
    await ctx.sleep(1)
    return await ctx.step("refused", refuse, 1)


async def joined(ctx: Ctx) -> int:
    return len(await ctx.join("both", {"a": refused, "b": refused}))


async def faulty(ctx: Ctx) -> int:
    raise KeyError("a fault")


async def outcomes(ctx: Ctx) -> Any:
    seen: list[str] = []
    for name, body in (("step", refused), ("join", joined)):
        outcome = await ctx.try_block(name, body)
        assert isinstance(outcome, Failed)
        seen.append(f"{outcome.source} {outcome.name} {outcome.error.type}")
    return seen


async def fault(ctx: Ctx) -> Any:
    return await ctx.try_block("fault", faulty)


def test_failures_are_named_with_their_source_from_every_prefix() -> None:
    assert check_replays(outcomes) == {"returned ['step refused ValueError', 'join both JoinError']"}


def test_a_fault_is_raised() -> None:
    assert play(fault)[0] == "raised KeyError 'a fault'"
