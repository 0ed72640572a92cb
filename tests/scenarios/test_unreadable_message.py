"""A message that does not fit what the workflow waits for stays unread and stops nothing."""

from __future__ import annotations

from durable import App, Context, Signal
from durable.testing import TestEnvironment

app = App("unreadable")
wider = App("unreadable")
PAY = Signal("pay", int)
PAY_OR_NOTE = Signal("pay", int | str)


@app.workflow
async def shop(ctx: Context) -> int:
    first = await ctx.mailbox.next(PAY)
    second = await ctx.mailbox.next(PAY, timeout="1h", default=None)
    return first.body + (0 if second is None else second.body)


@wider.workflow(name="shop")
async def wider_shop(ctx: Context) -> int | str:
    return (await ctx.mailbox.next(PAY_OR_NOTE)).body


def test_the_next_message_that_fits_is_received() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(shop, id="r")
        env.send("r", "pay", {"not": "a number"})
        env.run_until_idle()
        assert handle.status() == "suspended"
        env.send("r", PAY, 5)
        assert handle.result() == 5
        assert env.get("r").undelivered == 1


def test_it_does_not_hold_up_what_came_in_one_batch_with_it() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(shop, id="r")
        for body in ("x", 1, None, 2):
            env.send("r", "pay", body)
        assert handle.result() == 3
        assert env.get("r").undelivered == 2


def test_code_that_can_read_it_receives_it() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(shop, id="r")
        env.send("r", "pay", "see invoice")
        env.run_until_idle()
        env.deploy(wider)
        env.send("r", "pay", 7)
        assert handle.result() == "see invoice"
