"""Values that do not fit into the run record are read by every turn, cold or warm, and come back whole."""

import pytest

from durable import App, Context, RunFailed, Signal
from tests.scenarios.conftest import World

TEXT = Signal("text", str)
app = App("large")


def size(text: str) -> int:
    return len(text)


@app.workflow
async def echo(ctx: Context, text: str) -> str:
    await ctx.sleep("1m")
    first = await ctx.step("first", size, text)
    message = await ctx.mailbox.next(TEXT, timeout="1h")
    second = await ctx.step("second", size, message.body)
    if first != second:
        raise ValueError(text)
    return text + message.body


@pytest.mark.parametrize("length", [10, 300, 5_000, 120_000, 1_000_000])
@pytest.mark.parametrize("cold", [False, True])
def test_pay_01_input_messages_and_output_of_any_allowed_size(world: World, length: int, cold: bool) -> None:
    env = world(app)
    text = "é" + "x" * (length - 1)
    handle = env.start(echo, text, id="r")
    env.run_until_idle()
    if cold:
        env.restart()
    env.advance(minutes=5)
    if cold:
        env.restart()
    handle.send(TEXT, text)
    assert handle.result() == text * 2


def test_obs_02_a_large_error_is_kept_whole_enough(world: World) -> None:
    env = world(app)
    handle = env.start(echo, "y" * 1_000, id="r")
    env.advance(minutes=5)
    handle.send(TEXT, "short")
    with pytest.raises(RunFailed, match="ValueError: yyyy"):
        handle.result()
