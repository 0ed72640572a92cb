"""Loops whose past is pruned: steps, ephemeral steps and messages in iterations, and loops in loops."""

from __future__ import annotations

from durable.context import Context
from durable.testing.simulation.workloads.effects import Chain, Seen, app, hear, hear_perhaps, make, quick
from durable.testing.simulation.workloads.endings import check_completed, check_heard, check_messages
from durable.testing.simulation.workloads.workload import Ending, Workload
from durable.values import Break, Continue

ROUNDS = 7
LONG = 1_200
"""Seconds after which every invocation that was under way before is over."""


async def nested(ctx: Context, seen: Seen) -> Continue[Seen] | Break[Seen]:
    """Its history goes with every second iteration, and all of it with its end."""
    if seen.turn == 5:
        return Break(seen)
    so_far, heard = Chain(seen.numbers), [*seen.heard]
    if seen.turn == 4:
        await hear(ctx, heard, 1)
    elif seen.turn > 1:  # the first two iterations record nothing
        so_far.add(await ctx.step(quick("make", ephemeral=seen.turn == 2), make, [*so_far.numbers]))
    return Continue(Seen(seen.turn + 1, so_far.numbers, heard))


async def go_round(ctx: Context, seen: Seen) -> Continue[Seen] | Break[Seen]:
    """One iteration: everything that it hears and makes is passed on, so nothing may be lost or come twice."""
    so_far, heard = Chain(seen.numbers), [*seen.heard]
    so_far.add(await ctx.step(quick("before"), make, [*so_far.numbers]))
    await hear_perhaps(ctx, so_far, heard)
    if seen.turn % 3 == 0:
        await hear(ctx, heard, 8)
    so_far.add(await ctx.step(quick("guess", ephemeral=True), make, [*so_far.numbers]))
    if seen.turn % 4 == 1:
        inner = await ctx.loop("nested", nested, state=Seen(0, so_far.numbers, heard), history=2)
        so_far, heard = Chain(inner.numbers), inner.heard
    if seen.turn == 6:
        await hear(ctx, heard)
    so_far.add(await ctx.step(quick("after"), make, [*so_far.numbers]))
    turn = seen.turn + 1
    return Break(Seen(turn, so_far.numbers, heard)) if turn == ROUNDS else Continue(Seen(turn, so_far.numbers, heard))


@app.workflow
async def looping(ctx: Context, pause: int) -> list[int]:
    """Goes round, with a long pause in some of the seeds, and tells what it has heard."""
    first = await ctx.loop("round", go_round, state=Seen(), history=3)
    await ctx.sleep(pause)
    so_far = Chain(first.numbers)
    so_far.add(await ctx.step(quick("between"), make, [*so_far.numbers]))
    last = await ctx.loop("again", go_round, state=Seen(ROUNDS - 3, so_far.numbers, first.heard), history=3)
    so_far = Chain(last.numbers)
    so_far.add(await ctx.step(quick("last"), make, [*so_far.numbers]))
    return last.heard


def check(ending: Ending) -> None:
    """What is gone from the history has been heard all the same, once."""
    check_completed(ending)
    check_messages(ending)
    check_heard(ending, ending.watch.output)


LOOPING = Workload(
    name="looping", pace=0.3, workflow=looping, check=check, input=lambda random: random.choice([1, 1, LONG]), messages=(4, 12),  resent=0.5, stored=lambda prune_from: 45 + prune_from,
)  # fmt: skip
