"""An attempt that takes longer than its timeout fails the step; it is tried again only where the policy says so."""

import threading

import pytest

from durable import App, Context, RunFailed, Step
from tests.scenarios.conftest import World

app = App("timeouts")


def work() -> str:
    return "done"


@app.workflow
async def impatient(ctx: Context) -> str:
    return await ctx.step(Step(timeout=0.05), work)


@app.workflow
async def insistent(ctx: Context) -> str:
    return await ctx.step(Step(timeout=0.05, retry_on_timeout=True, retries=2), work)


def test_a_timeout_is_final_by_default(world: World) -> None:
    env = world(app)
    release = threading.Event()
    mock = env.mock(work).runs(lambda: str(release.wait(5)))
    with pytest.raises(RunFailed, match="no result within"):
        env.start(impatient, id="r").result()
    release.set()
    assert len(mock.calls) == 1


def test_rty_07_a_late_result_of_an_abandoned_attempt_is_dropped(world: World) -> None:
    env = world(app)
    release = threading.Event()
    mock = env.mock(work).runs(lambda: f"late {release.wait(5)}").returns("in time")
    assert env.start(insistent, id="r").result() == "in time"
    release.set()
    assert len(mock.calls) == 2
    assert env.history("r")[-1].value == '"in time"'
