"""A step of nearly a whole invocation's length is started by a fresh one, not handed over for ever."""

from __future__ import annotations

import pytest

from durable import App, Context, Step, Workflow
from durable.engine.options import EngineOptions
from durable.testing import TestEnvironment

app = App("short")
WHOLE = 120 - 24
"""An invocation of the test kit lasts 120 s, and this reserve leaves as much as this for steps."""
SMALL = EngineOptions(parallel_runs=1, reserve=24.0)


def work() -> str:
    return "done"


@app.workflow
async def nearly(ctx: Context) -> str:
    return await ctx.step(Step(timeout=WHOLE - 0.01), work)


@app.workflow
async def whole(ctx: Context) -> str:
    return await ctx.step(Step(timeout=None), work)


@app.workflow
async def ordinary(ctx: Context) -> str:
    return await ctx.step(work)


@pytest.mark.parametrize("workflow", [nearly, whole, ordinary], ids=lambda workflow: workflow.name)
def test_it_runs_although_loading_took_some_of_the_time(workflow: Workflow[None, str]) -> None:
    with TestEnvironment(app, options=SMALL) as env:
        handle = env.start(workflow, id="r")
        env.faults.freeze(2, at=2)
        assert handle.result() == "done"
        assert env.calls.count("store.acquire") == 1


def test_a_policy_without_a_timeout_fits_into_any_invocation() -> None:
    with TestEnvironment(app, options=EngineOptions(parallel_runs=1, reserve=110.0)) as env:
        assert env.start(ordinary, id="r").result() == "done"
