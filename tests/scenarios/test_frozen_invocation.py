"""An invocation that stands still past its lease changes nothing that counts once it goes on."""

import pytest

from durable import App, Context, Signal
from tests.scenarios.conftest import World

GO = Signal("go", int)
app = App("frozen")


def first() -> str:
    return "first"


def second() -> str:
    return "second"


@app.workflow
async def chain(ctx: Context) -> list[str]:
    return [await ctx.step(first), str((await ctx.mailbox.next(GO)).body), await ctx.step(second)]


@pytest.mark.parametrize("call", range(1, 12))
def test_con_01_whoever_loses_the_lease_leaves_a_run_that_ends(world: World, call: int) -> None:
    env = world(app)
    env.faults.freeze("10m", at=call)
    handle = env.start(chain, id="r")
    handle.send(GO, 1, id="m1")
    assert handle.result() == ["first", "1", "second"]
    assert [entry.location for entry in env.history("r") if not entry.mark] == ["first", "go", "second"]


def test_con_12_a_second_delivery_while_the_first_is_working_is_answered_without_trouble(world: World) -> None:
    env = world(app)
    handle = env.start(chain, id="r")
    env.run_until_idle()
    env.faults.freeze("20s", at=3)
    handle.send(GO, 1, id="m1")
    env.run_until_idle()
    assert handle.result() == ["first", "1", "second"]
    assert env.repairs == 0
