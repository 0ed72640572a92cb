"""A message satisfies one wait; the next wait of the same name needs another message."""

from durable import App, Context, Signal
from tests.scenarios.conftest import World

ITEM = Signal("item", str)
app = App("once")


@app.workflow
async def twice(ctx: Context) -> list[str | None]:
    first = await ctx.mailbox.next(ITEM)
    second = await ctx.mailbox.next(ITEM, timeout=5, default=None)
    return [first.body, None if second is None else second.body]


def test_msg_02_an_early_message_is_not_handed_out_twice(world: World) -> None:
    env = world(app)
    handle = env.start(twice, id="r")
    handle.send(ITEM, "a")
    assert handle.result() == ["a", None]


def test_two_messages_satisfy_two_waits(world: World) -> None:
    env = world(app)
    handle = env.start(twice, id="r")
    handle.send(ITEM, "a")
    handle.send(ITEM, "b")
    assert handle.result() == ["a", "b"]
