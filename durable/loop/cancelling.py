"""Cancels what a run waits for: each task once, so that clean-up code is not cancelled in its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from durable.errors import RunCancelled
from durable.loop.handles import WorkflowTask
from durable.loop.workflow_loop import WorkflowLoop


def cancel_run(loop: WorkflowLoop, main: asyncio.Task[Any], awaited: Iterable[asyncio.Future[Any]]) -> None:
    """Raises RunCancelled where the workflow waits, and into everything that is awaited; runs until idle.

    The main task is cancelled as asyncio cancels a task: what it waits for passes it on to its own tasks (a join to its
    branches, a TaskGroup to its members). A task that gets RunCancelled from an operation of its own is spared that
    second cancellation: it may have begun to clean up.
    """
    waiting_for: set[int] = set()
    for future in awaited:
        if not future.done():
            future.set_exception(RunCancelled("the run is cancelled"))
            waiting_for.add(id(future))
    loop.struck = {number for number, task in loop.tasks.items() if id(_waits_for(task)) in waiting_for}
    cancels_main = isinstance(main, WorkflowTask) and main.number not in loop.struck and not main.done()
    if cancels_main:
        main.cancel()
        # It is on its way to whatever the task waits for. Counted as a cancellation that nobody has taken back, it
        # would upset timeouts and task groups in the clean-up.
        main.uncancel()
    loop.cancelling_run = True
    try:
        loop.run_until_idle()
    finally:
        loop.cancelling_run = False
        loop.struck = set()


def _waits_for(task: asyncio.Task[Any]) -> object:
    return getattr(task, "_fut_waiter", None)
