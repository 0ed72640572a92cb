"""While runs continue one another, every message is consumed once, in order, and no sender is refused."""

import pytest

from durable import App, Break, Context, Continue, Signal
from durable.client import RunHandle
from durable.model.envelope import Deliver
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


@app.workflow
async def late_reader(ctx: Context, n: int) -> list[int]:
    if n == 0:
        await ctx.sleep("30s")
        return await ctx.continue_as_new(late_reader, 1)
    await ctx.sleep("2m")
    return [await ctx.wait_for_signal(ITEM), await ctx.wait_for_signal(ITEM)]


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
    handle = env.start(late_reader, 0, id="r")
    env.run_until_idle()
    env.faults.delay_next("1m")
    handle.send(ITEM, 1)  # comes to the first life, which has ended by then
    env.advance(seconds=40)
    handle.send(ITEM, 2)  # comes to the second at once
    assert handle.result() == [1, 2]


def test_what_is_copied_is_copied_once_however_often_the_turn_looks_again(world: World) -> None:
    def turned_over(*, disturbed_at: int | None) -> TestEnvironment:
        env = world(app)
        handle = env.start(picky, 0, id="r")
        for item in range(60):
            handle.send(OTHER, item)
        handle.send(ITEM, 1)
        if disturbed_at is not None:
            env.faults.freeze(1, at=disturbed_at)
            meanwhile = env.world.faults.pass_time

            def send_and_pass(seconds: float) -> None:
                env.ports.timers.send(
                    Deliver(run_id="r", id="late", name="other", body="99")
                )  # not held up by its group
                meanwhile(seconds)

            env.world.faults.pass_time = send_and_pass
        env.run_until_idle()
        assert env.get("r").id == "r~2"
        return env

    clean = turned_over(disturbed_at=None)
    again = turned_over(disturbed_at=clean.calls.index("store.continue_as_new") + 1)
    assert again.calls.count("store.continue_as_new") == 2
    # The new message is put where it was sent, and copied.
    assert again.calls.count("store.put_message") == clean.calls.count("store.put_message") + 2


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


@pytest.mark.slow
def test_a_crash_anywhere_loses_no_message_of_very_many() -> None:
    def script(env: TestEnvironment, handle: RunHandle[object]) -> None:
        for item in range(51):
            handle.send(OTHER, item, id=f"other-{item}")
        handle.send(ITEM, 1, id="first")
        handle.send(ITEM, 2, id="second")

    assert TestEnvironment(app).run_crash_matrix(picky, 0, script=script).calls.count("store.continue_as_new") == 1
