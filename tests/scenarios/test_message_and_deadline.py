"""Whichever came first decides: a message that arrived after the deadline loses to it and stays for the next wait."""

from durable import App, Context, Signal
from tests.scenarios.conftest import World

GO = Signal("go", str)
app = App("deadlines")


@app.workflow
async def two_waits(ctx: Context) -> list[str | None]:
    first = await ctx.mailbox.next(GO, timeout=10, default=None)
    second = await ctx.mailbox.next(GO, timeout=60, default=None)
    return [m if m is None else m.body for m in (first, second)]


def test_msg_03_a_wait_that_timed_out_does_not_swallow_the_next_message(world: World) -> None:
    env = world(app)
    handle = env.start(two_waits, id="r")
    env.advance(seconds=15)
    handle.send(GO, "late")
    assert handle.result() == [None, "late"]


def test_a_message_after_the_deadline_loses_to_it_even_when_one_turn_sees_both(world: World) -> None:
    env = world(app)
    handle = env.start(two_waits, id="r")
    env.run_until_idle()
    env.outage("15s")
    handle.send(GO, "late")
    assert handle.result() == [None, "late"]


def test_a_message_before_the_deadline_is_received_by_a_late_turn(world: World) -> None:
    env = world(app)
    handle = env.start(two_waits, id="r")
    env.run_until_idle()
    env.outage("5s")
    handle.send(GO, "in time")
    env.outage("20s")
    assert handle.result() == ["in time", None]
