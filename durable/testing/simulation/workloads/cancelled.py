"""A run that would never end by itself, and is cancelled at some moment: it cleans up, or is undone."""

from __future__ import annotations

import asyncio

from durable.channels import Signal
from durable.context import Context
from durable.errors import RunCancelled
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import Chain, app, effects, hear, hear_perhaps, make, quick, unmake
from durable.testing.simulation.workloads.endings import check_messages, check_undone
from durable.testing.simulation.workloads.workload import Ending, Workload

NEVER = Signal("never", int)
CLEAN_UP = ("free", "breath", "tell")


@app.workflow
async def cancelled(ctx: Context) -> None:
    """Cleans up when it is told to."""
    so_far = Chain()
    heard: list[int] = []
    try:
        so_far.add(await ctx.step(quick("first").undo(unmake), make, [*so_far.numbers]))
        await hear(ctx, heard, 15)
        so_far.add(
            *await asyncio.gather(
                ctx.step(quick("a-left").undo(unmake), make, [*so_far.numbers]),
                ctx.step(quick("z-right").undo(unmake), make, [*so_far.numbers]),
            )
        )
        await hear(ctx, heard)
        await hear_perhaps(ctx, so_far, heard)
        so_far.add(await ctx.step(quick("second"), make, [*so_far.numbers]))
        await asyncio.gather(ctx.sleep(7, name="nap"), hear(ctx, heard, 20))
        so_far.add(await ctx.step(quick("last").undo(unmake), make, [*so_far.numbers]))
        await ctx.mailbox.next(NEVER)
    except RunCancelled:
        so_far.add(await ctx.step(quick("free"), make, [*so_far.numbers]))
        await ctx.sleep(4, name="breath")
        so_far.add(await ctx.step(quick("tell"), make, [*so_far.numbers]))
        raise


def check(ending: Ending) -> None:
    """The run is cancelled, as it was asked to be in the end."""
    watch, run = ending.watch, ending.watch.run
    if run.status != "cancelled":
        raise Violation(f"cancellation: the run ended as {run.status}: {run.error or run.reason}")
    check_messages(ending)
    if "compensate" in {run.cancel_requested, *ending.asked}:
        check_undone(ending)
    elif watch.history():
        _check_cleaned_up(ending)


def _check_cleaned_up(ending: Ending) -> None:
    history = ending.watch.history()
    if effects.undone:
        raise Violation(f"cancellation: {effects.undone} was undone, and nobody has asked for that")
    record = history.get("cancel^")
    if record is None:
        raise Violation("cancellation: it is not recorded")
    after = sorted((e for e in history.values() if e.order > record.order), key=lambda entry: entry.order)
    # A step that ran at that moment and can be undone is recorded all the same.
    results = [entry.key for entry in after if "@" not in entry.mark and entry.compensation is None]
    if tuple(results) != CLEAN_UP:
        raise Violation(f"cancellation: {results} was recorded afterwards, and the clean-up is {list(CLEAN_UP)}")


CANCELLED = Workload(
    name="cancelled", workflow=cancelled, check=check,
    cancels=(
        ("graceful",), ("graceful", "graceful"), ("compensate",), ("graceful", "compensate"), ("compensate", "graceful"),
    ),
)  # fmt: skip
