"""A run that goes on as another one again and again, while messages come to any of its ids all the time."""

from __future__ import annotations

from durable.context import Context
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import Chain, Seen, app, hear, hear_perhaps, make, quick
from durable.testing.simulation.workloads.endings import check_completed, check_heard, check_messages
from durable.testing.simulation.workloads.workload import Ending, Workload

LIVES = 4


@app.workflow
async def continued(ctx: Context, seen: Seen) -> list[int]:
    """One life: hears a few messages and passes on what it knows."""
    so_far, heard = Chain(seen.numbers), [*seen.heard]
    so_far.add(await ctx.step(quick("first"), make, [*so_far.numbers]))
    await hear(ctx, heard, 5)
    so_far.add(await ctx.step(quick("second"), make, [*so_far.numbers]))
    await hear_perhaps(ctx, so_far, heard)
    await hear(ctx, heard)
    so_far.add(await ctx.step(quick("third", ephemeral=seen.turn == 1), make, [*so_far.numbers]))
    await hear_perhaps(ctx, so_far, heard)
    if seen.turn + 1 < LIVES:
        await ctx.continue_as_new(continued, Seen(seen.turn + 1, so_far.numbers, heard))
    so_far.add(await ctx.step(quick("last"), make, [*so_far.numbers]))
    return heard


def check(ending: Ending) -> None:
    """Each life is completed, and each message was heard in one of them."""
    check_completed(ending)
    if len(ending.watch.lineage) != LIVES:
        raise Violation(f"I6: the run has had {len(ending.watch.lineage)} lives, not {LIVES}")
    check_messages(ending)
    check_heard(ending, ending.watch.output)


CONTINUED = Workload(
    name="continued", pace=0.5, workflow=continued, check=check, input=lambda _: Seen(), messages=(8, 20),
    flood=80, resent=0.3,
)  # fmt: skip
