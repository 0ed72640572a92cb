"""A wait that reaches its deadline gives its default, or raises WaitTimeout where it has none."""

from durable import App, Context, Signal, WaitTimeout
from tests.scenarios.conftest import World

GO = Signal("go", str)
app = App("timeouts")


@app.workflow
async def with_default(ctx: Context) -> str:
    message = await ctx.mailbox.next(GO, timeout="1h", default="nobody")
    return message if isinstance(message, str) else message.body


@app.workflow
async def without_default(ctx: Context) -> str:
    try:
        await ctx.mailbox.next(GO, timeout="1h")
    except WaitTimeout as timeout:
        await ctx.sleep(1)
        return f"{timeout.location} is a TimeoutError: {isinstance(timeout, TimeoutError)}"
    return "received"


def test_the_default_is_given_at_the_deadline(world: World) -> None:
    env = world(app)
    before = env.now
    assert env.start(with_default, id="r").result() == "nobody"
    assert 3600 <= (env.now - before).total_seconds() < 3610


def test_wait_timeout_is_raised_live_and_on_replay(world: World) -> None:
    env = world(app)
    handle = env.start(without_default, id="r")
    env.restart()
    assert handle.result() == "go is a TimeoutError: True"
