"""A message id is consumed once by a run; the same id sent to another run is that run's own message."""

import pytest

from durable import App, Context, Signal
from tests.scenarios.conftest import World

PAY = Signal("pay", int)
app = App("duplicates")


@app.workflow
async def collect(ctx: Context) -> list[int]:
    seen: list[int] = []
    while (message := await ctx.mailbox.next(PAY, timeout="1h", default=None)) is not None:
        seen.append(message.body)
    return seen


@pytest.mark.parametrize("pause", ["0s", "1m", "20m"])
def test_the_same_id_twice_is_consumed_once(world: World, pause: str) -> None:
    env = world(app)
    handle = env.start(collect, id="r")
    handle.send(PAY, 5, id="payment-1")
    env.advance(pause)
    handle.send(PAY, 5, id="payment-1")
    handle.send(PAY, 6, id="payment-2")
    assert handle.result() == [5, 6]


def test_msg_11_the_scope_of_an_id_is_the_recipient(world: World) -> None:
    env = world(app)
    handles = [env.start(collect, id=run_id) for run_id in ("r1", "r2")]
    for handle in handles * 2:
        handle.send(PAY, 1, id="k1")
    assert [handle.result() for handle in handles] == [[1], [1]]
