"""Every kind of plain operation, one after the other: steps, waits with and without deadlines, sleeps, siblings, a send."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from durable.channels import Signal
from durable.context import Context
from durable.errors import StepInterrupted
from durable.model.envelope import Deliver
from durable.model.sending import recorded_send_from
from durable.options import Step
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import (
    Chain,
    app,
    effects,
    hear,
    hear_perhaps,
    impatient,
    make,
    make_at_second_attempt,
    quick,
)
from durable.testing.simulation.workloads.endings import check_completed, check_messages
from durable.testing.simulation.workloads.workload import Ending, Workload

if TYPE_CHECKING:
    from durable.testing.simulation.seams import PortCall
    from durable.testing.simulation.watch import Watch

DONE = Signal("done", int)
OTHER_RUN = "other"
"""Is sent something; it need not exist for that."""
SENT = "messages to the other run"

CAREFUL = Step("careful", timeout=5, at_most_once=True, retries=0)


@app.workflow
async def chain(ctx: Context) -> list[int]:
    """Mixes every kind of operation; the output tells which messages and results it saw."""
    so_far = Chain()
    heard: list[int] = []
    so_far.add(await ctx.step(quick("first"), make, [*so_far.numbers]))
    await hear(ctx, heard, 15)
    so_far.add(await ctx.step(quick("second"), make, [*so_far.numbers]))
    await ctx.mailbox.send(OTHER_RUN, DONE, len(so_far.numbers))
    await hear_perhaps(ctx, so_far, heard)
    await hear(ctx, heard)
    await ctx.mailbox.send(OTHER_RUN, DONE, len(so_far.numbers))
    so_far.add(  # named so that other entries lie between them in the order of keys: a loader may see one without the other
        *await asyncio.gather(
            ctx.step(quick("a-left"), make, [*so_far.numbers]),
            ctx.step(quick("z-right"), make, [*so_far.numbers]),
        )
    )
    await ctx.sleep(7)
    await ctx.mailbox.send(OTHER_RUN, DONE, len(so_far.numbers))
    so_far.add(await ctx.step(impatient("flaky"), make_at_second_attempt, [*so_far.numbers]))
    await hear(ctx, heard, 10)
    with suppress(StepInterrupted):
        so_far.add(await ctx.step(CAREFUL, make, [*so_far.numbers]))
    await ctx.mailbox.send(OTHER_RUN, DONE, len(so_far.numbers))
    so_far.add(await ctx.step(quick("last"), make, [*so_far.numbers]))
    return so_far.numbers + heard


def check(ending: Ending) -> None:
    """Every step has a result that follows from those before it, and the other run has heard once."""
    check_completed(ending)
    check_messages(ending)
    history = ending.watch.history()
    for location in ("first", "second", "a-left", "z-right", "flaky", "last"):
        if location not in history or not effects.executions[location]:
            raise Violation(f"I1: step {location} has no result, or a result without an execution")
    if effects.executions["careful"] > 1:
        raise Violation("I1: an at-most-once step was executed twice")
    _check_send(ending)


def look(watch: Watch, call: PortCall) -> None:
    """Remembers what is sent to the other run."""
    del watch
    if call.name == "runs.send" and isinstance(call.args[0], Deliver) and call.args[0].run_id == OTHER_RUN:
        effects.notes.setdefault(SENT, set()).add(call.args[0].id)


def _check_send(ending: Ending) -> None:
    """I3 for the receiver: what a run sends once is sent under one id, however often it is."""
    sent: set[str] = effects.notes.get(SENT, set())
    history = ending.watch.history().values()
    recorded = {recorded_send_from(entry.value).message_id for entry in history if entry.kind == "send"}
    if sent != recorded:
        raise Violation(f"I3: recorded is {recorded}, sent was {sent}")


CHAIN = Workload(name="chain", workflow=chain, check=check, look=look, executions={"flaky": 2})
