"""An at-most-once step whose process dies is not run again: the workflow learns that it may have run."""

from durable import App, Context, Step, StepInterrupted
from durable.testing import kill_process
from tests.scenarios.conftest import World

app = App("once")


def pay() -> str:
    return "paid"


@app.workflow
async def careful(ctx: Context) -> str:
    try:
        return await ctx.step(Step(at_most_once=True, retries=0), pay)
    except StepInterrupted as interrupted:
        await ctx.sleep(1)
        return f"{interrupted.name} may have run"


def test_rty_06_a_payment_that_may_have_happened_is_not_repeated(world: World) -> None:
    env = world(app)
    mock = env.mock(pay).runs(kill_process)
    assert env.start(careful, id="r").result() == "pay may have run"
    assert len(mock.calls) == 1


def test_an_at_most_once_step_that_ends_is_an_ordinary_step(world: World) -> None:
    env = world(app)
    assert env.start(careful, id="r").result() == "paid"
