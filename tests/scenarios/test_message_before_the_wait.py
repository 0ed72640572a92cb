"""A message that is sent before the run waits for it, or before its first turn, is received later."""

from durable import App, Context, Signal
from tests.scenarios.conftest import World

GO = Signal("go", int)
app = App("early")


def prepare() -> str:
    return "ready"


@app.workflow
async def patient(ctx: Context) -> int:
    await ctx.step(prepare)
    await ctx.sleep("10s")
    return (await ctx.mailbox.next(GO)).body


def test_msg_01_a_message_sent_before_the_first_turn_is_received(world: World) -> None:
    env = world(app)
    handle = env.start(patient, id="r")
    handle.send(GO, 7)
    assert handle.result() == 7


def test_msg_01_a_message_sent_while_the_run_sleeps_is_received_by_the_wait_that_follows(world: World) -> None:
    env = world(app)
    handle = env.start(patient, id="r")
    env.advance(seconds=5)
    handle.send(GO, 8)
    assert handle.result() == 8
    assert env.repairs == 0
