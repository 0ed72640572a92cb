"""Messages of one name are received in the order in which they were sent, whatever is delivered twice."""

from durable import App, Context, Signal
from tests.scenarios.conftest import World

A = Signal("a", int)
B = Signal("b", int)
app = App("order")


@app.workflow
async def reads(ctx: Context) -> list[int]:
    of_a = [(await ctx.mailbox.next(A)).body for _ in range(4)]
    return [*of_a, (await ctx.mailbox.next(B)).body]


def test_msg_15_messages_stored_before_anyone_reads_are_first_in_first_out_per_name(world: World) -> None:
    env = world(app)
    handle = env.start(reads, id="r")
    for signal, body in ((A, 1), (A, 2), (A, 3), (B, 10), (A, 4)):
        handle.send(signal, body)
    assert handle.result() == [1, 2, 3, 4, 10]


def test_order_survives_duplicated_deliveries(world: World) -> None:
    env = world(app)
    handle = env.start(reads, id="r")
    env.run_until_idle()
    for body in (1, 2, 3, 4):
        env.faults.duplicate_next()
        handle.send(A, body)
        env.run_until_idle()
    handle.send(B, 10)
    assert handle.result() == [1, 2, 3, 4, 10]
