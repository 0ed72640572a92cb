"""What is on its way counts: a run gives no attempt up whose worker has told its result."""

import pytest

from durable import App, Call, Context
from durable.model.envelope import Deliver
from durable.model.task import DONE, StepTask, TaskOutcome, task_from
from durable.testing import TestEnvironment

app = App("calls")


@app.remote_step(timeout="1m", retries=3)
def work() -> str:
    return "by the worker"


@app.workflow
async def calls(ctx: Context) -> str:
    return await ctx.call(Call("work", heartbeat="10s"), work)


@pytest.mark.parametrize("arrives", [True, False])
def test_an_attempt_whose_result_is_on_its_way_is_not_made_again(arrives: bool) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(calls, id="r")
        assert env.world.deliver()
        (received,) = env.world.services.steps.receive(1)
        env.world.services.steps.acknowledge(received.receipt)
        task, store, now = task_from(received.body), env.ports.store, env.now.timestamp()
        store.start_task("r", task.id, worker="w", now=now, expires_at=2e9)
        store.close_task("r", task.id, reason=DONE, expires_at=2e9)
        env.advance("30s")
        assert [entry.mark for entry in env.history("r")] == ["?1"]
        if arrives:
            outcome = TaskOutcome(value='"by hand"', started_at=now, worker="w")
            env.world.services.runs.send(message_of(task, outcome))
        assert handle.result() == ("by hand" if arrives else "by the worker")


def message_of(task: StepTask, outcome: TaskOutcome) -> Deliver:
    return Deliver(run_id=task.run_id, id=task.id, name=task.location, kind="result", body=outcome.to_text())
