"""A run that fails at some place after it has done things that can be undone, some of them in iterations that are pruned."""

from __future__ import annotations

import asyncio

from durable.context import Context
from durable.errors import NonRetryableError
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import (
    Chain,
    Seen,
    app,
    effects,
    hear,
    hear_perhaps,
    impatient,
    make,
    make_at_second_attempt,
    quick,
    unmake,
    unmake_at_second_attempt,
)
from durable.testing.simulation.workloads.endings import check_messages, check_undone
from durable.testing.simulation.workloads.workload import Ending, Workload
from durable.values import Break, Continue

ROUNDS = 6
PLACES = 5


class NoRoomLeft(NonRetryableError):
    """Why the run fails."""


def refuse() -> None:
    """A step that fails for good."""
    raise NoRoomLeft


@app.workflow
async def saga(ctx: Context, fails_at: int) -> None:
    """Fails at the place that its input names, and at its end in any case."""
    so_far = Chain()
    heard: list[int] = []

    async def fail(place: int) -> None:
        if place == fails_at:
            await ctx.step(quick("refuse"), refuse)

    async def go_round(ctx: Context, seen: Seen) -> Continue[Seen] | Break[Seen]:
        chain = Chain(seen.numbers)
        chain.add(await ctx.step(quick("book").undo(unmake_at_second_attempt), make, [*chain.numbers]))
        if seen.turn == 4:
            await fail(3)
        await hear_perhaps(ctx, chain, heard)
        seen = Seen(seen.turn + 1, chain.numbers)
        return Break(seen) if seen.turn == ROUNDS else Continue(seen)

    so_far.add(await ctx.step(quick("flight").undo(unmake), make, [*so_far.numbers]))
    await fail(0)
    await hear(ctx, heard, 15)
    so_far.add(
        *await asyncio.gather(
            ctx.step(quick("a-hotel").undo(unmake), make, [*so_far.numbers]),
            ctx.step(quick("z-car").undo(unmake_at_second_attempt), make, [*so_far.numbers]),
        )
    )
    await fail(1)
    so_far.add(await ctx.step(quick("nothing-to-undo"), make, [*so_far.numbers]))
    rounds = await ctx.loop("rounds", go_round, state=Seen(0, so_far.numbers), history=2)
    so_far = Chain(rounds.numbers)
    await fail(2)
    await ctx.sleep(7)
    so_far.add(
        await ctx.step(impatient("flaky").undo(unmake_at_second_attempt), make_at_second_attempt, [*so_far.numbers])
    )
    raise NoRoomLeft


def check(ending: Ending) -> None:
    """The run has failed, with its own error, and everything is undone."""
    run = ending.watch.run
    if run.status != "failed" or run.error is None or NoRoomLeft.__name__ not in str(run.error):
        raise Violation(f"I1: the run ended as {run.status}: {run.error or run.reason}")
    check_messages(ending)
    check_undone(ending)
    if not effects.undone:
        raise Violation("rollback: nothing was undone")


SAGA = Workload(
    name="saga", pace=0.3, workflow=saga, check=check, input=lambda random: random.randrange(PLACES), executions={"flaky": 2},
    resent=0.3,
)  # fmt: skip
