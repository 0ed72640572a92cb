"""A run whose only operation is a wait suspends, says what it waits for, and ends."""

import pytest

from durable import App, Context, Deadlock, Signal
from tests.scenarios.conftest import World

GO = Signal("go", int)
app = App("waits")


@app.workflow
async def only_sleep(ctx: Context) -> None:
    await ctx.sleep(35)


@app.workflow
async def only_message(ctx: Context) -> int:
    return (await ctx.mailbox.next(GO)).body


def test_tmr_08_a_run_that_only_sleeps_suspends_and_ends(world: World) -> None:
    env = world(app)
    handle = env.start(only_sleep, id="r")
    env.run_until_idle()
    assert env.get("r").status == "suspended"
    assert handle.result() is None


def test_obs_02_a_waiting_run_says_what_it_waits_for(world: World) -> None:
    env = world(app)
    env.start(only_message, id="r")
    env.run_until_idle()
    assert env.get("r").reason == 'signal "go"'
    assert env.get("r").waiting_for == ("signal:go",)


def test_asking_for_a_result_that_nothing_can_bring_names_what_is_missing(world: World) -> None:
    env = world(app)
    handle = env.start(only_message, id="r")
    with pytest.raises(Deadlock, match='signal "go"'):
        handle.result()
