"""While runs continue one another, every message is consumed once, in order, and no sender is refused."""

import pytest

from durable import App, Break, Context, Continue, Signal
from durable.client import RunHandle
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

ITEM = Signal("item", int)
OTHER = Signal("other", int)
app = App("turning over")


@app.workflow
async def sorting(ctx: Context, seen: list[int]) -> list[int]:
    """Ten items a life; -1 ends it."""
    for _ in range(10):
        item = await ctx.wait_for_signal(ITEM)
        if item < 0:
            return seen
        seen.append(item)
    return await ctx.continue_as_new(sorting, seen)


@app.workflow
async def looping(ctx: Context, seen: list[int]) -> list[int]:
    """As sorting, in a loop that prunes what it has consumed."""

    async def body(ctx: Context, seen: list[int]) -> Break[list[int]] | Continue[list[int]]:
        item = await ctx.wait_for_signal(ITEM)
        if item < 0:
            return Break(seen)
        if len(seen) % 10 == 9:
            await ctx.continue_as_new(looping, [*seen, item])
        return Continue([*seen, item])

    return await ctx.loop("items", body, state=seen, history=2)


@app.workflow
async def picky(ctx: Context, n: int) -> list[int]:
    if n == 0:
        await ctx.wait_for_signal(ITEM)
        await ctx.continue_as_new(picky, 1)
    return [await ctx.wait_for_signal(OTHER), await ctx.wait_for_signal(ITEM)]


@pytest.mark.parametrize("workflow", [sorting, looping], ids=["sorting", "looping"])
def test_msg_06_a_stream_of_messages_is_consumed_once_and_in_order(world: World, workflow) -> None:
    env = world(app)
    sent = iter(range(100))

    def go_on_sending() -> None:
        if (item := next(sent, None)) is not None:
            env.send("r", ITEM, item)  # always to the oldest id: never refused

    handle = env.start(workflow, [], id="r")
    env.world.after_delivery = go_on_sending
    env.run_until_idle()
    env.send("r", ITEM, -1)
    assert handle.result() == list(range(100))
    assert env.get("r").id != "r"
    assert env.repairs == 0


@pytest.mark.parametrize("unread", [49, 50, 51, 130])
def test_any_number_of_unread_messages_goes_over(world: World, unread: int) -> None:
    env = world(app)
    handle = env.start(picky, 0, id="r")
    for item in range(unread):
        handle.send(OTHER, item)
    handle.send(ITEM, -1)
    handle.send(ITEM, -2)
    assert handle.result() == [0, -2]
    assert env.get("r").undelivered == unread - 1


def test_a_message_that_comes_too_late_is_led_on(world: World) -> None:
    env = world(app)
    handle = env.start(picky, 0, id="r")
    env.run_until_idle()
    handle.send(ITEM, 1)
    handle.send(ITEM, 2)
    env.faults.duplicate_next()
    env.run_until_idle()
    assert env.get("r").id == "r~2"
    handle.send(OTHER, 3)
    assert handle.result() == [3, 2]
    assert env.repairs == 0


def test_a_message_keeps_its_time_when_it_is_led_on(world: World) -> None:
    env = world(app)
    handle = env.start(sorting, list(range(9)), id="r")
    env.run_until_idle()
    handle.send(ITEM, 9)
    handle.send(ITEM, 10, id="late")
    env.faults.crash_at(len(["put", "acquire", "load", "put_entry", "bury", "continue"]), after=True)
    env.run_until_idle()
    env.advance(minutes=1)
    handle.send(ITEM, 11)
    handle.send(ITEM, -1)
    assert handle.result() == list(range(12))


def test_an_id_that_an_older_life_has_consumed_is_spent(world: World) -> None:
    env = world(app)
    handle = env.start(picky, 0, id="r")
    handle.send(ITEM, 1, id="once")
    env.run_until_idle()
    handle.send(ITEM, 1, id="once")
    handle.send(OTHER, 3)
    handle.send(ITEM, 2)
    assert handle.result() == [3, 2]


def test_a_crash_anywhere_loses_no_message() -> None:
    def script(env: TestEnvironment, handle: RunHandle[object]) -> None:
        for item in range(12):
            handle.send(ITEM, item, id=f"m-{item}")
        env.advance(minutes=20)
        handle.send(ITEM, 12, id="m-12")
        handle.send(ITEM, -1, id="end")

    env = TestEnvironment(app)
    assert len(env.run_crash_matrix(sorting, [], script=script).calls) > 30


def test_a_crash_anywhere_loses_no_message_of_very_many() -> None:
    def script(env: TestEnvironment, handle: RunHandle[object]) -> None:
        for item in range(51):
            handle.send(OTHER, item, id=f"other-{item}")
        handle.send(ITEM, 1, id="first")
        handle.send(ITEM, 2, id="second")

    assert TestEnvironment(app).run_crash_matrix(picky, 0, script=script).calls.count("store.continue_as_new") == 1
