"""`next_any` takes the first message of several names, in order of arrival; `next_batch` takes several at once."""

from durable import App, Context, Signal
from tests.scenarios.conftest import World

RED = Signal("red", int)
BLUE = Signal("blue", str)
app = App("several")


@app.workflow
async def either(ctx: Context) -> list[str]:
    seen: list[str] = []
    for _ in range(3):
        message = await ctx.mailbox.next_any(RED, BLUE)
        seen.append(f"{message.name} {message.body}")
    return seen


@app.workflow
async def batches(ctx: Context) -> list[list[int]]:
    first = await ctx.mailbox.next_batch(RED, count=2, timeout="1m")
    second = await ctx.mailbox.next_batch(RED, count=10, timeout="1m")
    third = await ctx.mailbox.next_batch(RED, count=10, timeout="1m")
    return [[m.body for m in batch] for batch in (first, second, third)]


def test_next_any_takes_messages_in_order_of_arrival(world: World) -> None:
    env = world(app)
    handle = env.start(either, id="r")
    handle.send(BLUE, "one")
    handle.send(RED, 2)
    handle.send(BLUE, "three")
    assert handle.result() == ["blue one", "red 2", "blue three"]


def test_next_batch_takes_at_most_count_and_nothing_after_its_timeout(world: World) -> None:
    env = world(app)
    handle = env.start(batches, id="r")
    for n in (1, 2, 3):
        handle.send(RED, n)
    assert handle.result() == [[1, 2], [3], []]
