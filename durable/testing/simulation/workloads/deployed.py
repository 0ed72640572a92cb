"""Code that changes under a run: an operation is added before, between and after what the run has done already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.app import App
from durable.context import Context
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import Chain, app, hear, make, quick
from durable.testing.simulation.workloads.endings import check_completed, check_heard, check_messages
from durable.testing.simulation.workloads.workload import Ending, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

after = App("simulation")
"""What is deployed while runs are under way."""
ADDED = ("early", "between", "late")


def code(*, new: bool) -> Callable[[Context], Coroutine[Any, Any, list[Any]]]:
    """The workflow before or after the deployment."""

    async def deployed(ctx: Context) -> list[Any]:
        so_far, heard = Chain(), list[int]()
        added: list[str] = []

        async def add(name: str) -> None:
            if new and ctx.get_version(name, 2) == 2:
                so_far.add(await ctx.step(quick(f"{name}-step"), make, [*so_far.numbers]))
                added.append(name)

        await add("early")
        so_far.add(await ctx.step(quick("first"), make, [*so_far.numbers]))
        await hear(ctx, heard, 12)
        await add("between")
        so_far.add(await ctx.step(quick("second"), make, [*so_far.numbers]))
        await ctx.sleep(20)
        await add("late")
        await hear(ctx, heard)
        so_far.add(await ctx.step(quick("last"), make, [*so_far.numbers]))
        return [heard, added]

    return deployed


DEPLOYED_WORKFLOW = app.workflow(code(new=False))
after.workflow(code(new=True))


def check(ending: Ending) -> None:
    """The run has come to its end whatever the code did, and what was added is there from some place on."""
    check_completed(ending)
    check_messages(ending)
    heard, added = ending.watch.output
    check_heard(ending, heard)
    history = ending.watch.history()
    recorded = [name for name in ADDED if f"{name}-step" in history]
    if added != recorded or added != list(ADDED[len(ADDED) - len(added) :]):
        raise Violation(f"deployment: {added} was executed, {recorded} is recorded")


DEPLOYED = Workload(
    name="deployed", workflow=DEPLOYED_WORKFLOW, check=check, apps=(app, after), deploys=True
)  # fmt: skip
