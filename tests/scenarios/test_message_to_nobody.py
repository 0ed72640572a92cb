"""A message to a run that has ended, or that never was, is refused with an error that says which."""

import pytest

from durable import App, Context, RunEnded, RunNotFound, Signal
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

GO = Signal("go", int)
app = App("nobody")


@app.workflow
async def short(ctx: Context) -> str:
    await ctx.sleep(1)
    return "done"


def test_msg_09_a_message_to_an_ended_run_is_refused(world: World) -> None:
    env = world(app)
    handle = env.start(short, id="r")
    handle.result()
    with pytest.raises(RunEnded, match="completed"):
        handle.send(GO, 1)


def test_msg_09_a_message_to_a_run_that_never_was_is_refused(world: World) -> None:
    env = world(app)
    with pytest.raises(RunNotFound, match="nobody-here"):
        env.send("nobody-here", GO, 1)


def test_msg_08_messages_that_nobody_read_are_counted_on_the_ended_run(world: World) -> None:
    env = world(app)
    handle = env.start(short, id="r")
    for n in range(4):
        handle.send(GO, n)
    assert handle.result() == "done"
    assert env.get("r").undelivered == 4


@app.workflow
async def sender(ctx: Context) -> None:
    await ctx.mailbox.send("later", GO, 5)


@app.workflow
async def listener(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


def test_a_run_that_is_created_while_a_message_to_it_is_dropped_gets_it() -> None:
    clean = TestEnvironment(app)
    clean.start(sender)
    clean.run_until_idle()
    dropped_at = clean.calls.index("store.delete_messages") + 1

    env = TestEnvironment(app)
    env.faults.meanwhile(lambda: env.start(listener, id="later"), at=dropped_at)
    env.start(sender)
    env.run_until_idle()
    assert env.handle(listener, "later").result() == 5
