"""A service that does not answer, before or after the effect, costs a turn and nothing else."""

import pytest

from durable import App, Context, Signal
from tests.scenarios.conftest import World

GO = Signal("go", int)
app = App("refused")


def work() -> str:
    return "worked"


@app.workflow
async def chain(ctx: Context) -> list[str]:
    before = await ctx.step("before", work)
    message = await ctx.mailbox.next(GO, timeout="1h")
    return [before, str(message.body), await ctx.step("after", work)]


CALLS = [
    "store.acquire",
    "store.load",
    "store.put_entry",
    "store.put_message",
    "store.settle",
    "timers.arm",
    "store.delete_messages",
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_rty_09_rty_10_a_call_that_fails_is_made_again_by_another_turn(world: World, call: str, after: bool) -> None:
    env = world(app)
    env.faults.fail_next_call(call, after=after)
    handle = env.start(chain, id="r")
    env.run_until_idle()
    handle.send(GO, 1, id="m1")
    assert handle.result() == ["worked", "1", "worked"]


def test_rty_09_no_code_runs_after_a_result_that_was_not_recorded(world: World) -> None:
    env = world(app)
    mock = env.mock(work).returns("worked")
    env.faults.fail_next_call("store.put_entry")
    env.start(chain, id="r")
    env.faults.delay_next("0s")
    env.run_until_idle()
    assert len(mock.calls) == 1
