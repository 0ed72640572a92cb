"""A compensating cancellation runs no more code: it waits for running steps, undoes what was done, and ends the run."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from durable import App, Context, RunBlocked, RunCancelled, RunEnded, RunWasCancelled, Signal, Step
from durable.engine.options import EngineOptions
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("compensate")
GO = Signal("go", str)
done: list[str] = []
running, proceed = threading.Event(), threading.Event()


slow_bodies = 0
ended = threading.Condition()


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Bodies that were left behind end before the next test: they would write into its list."""
    done.clear()
    running.clear()
    proceed.clear()
    yield
    proceed.set()
    with ended:
        assert ended.wait_for(lambda: slow_bodies == 0, timeout=10)


def book(what: str) -> str:
    done.append(f"book {what}")
    return what


def slow(what: str) -> str:
    global slow_bodies  # noqa: PLW0603 - bodies are functions of the module
    with ended:
        slow_bodies += 1
    running.set()
    proceed.wait(5)
    try:
        return book(what)
    finally:
        with ended:
            slow_bodies -= 1
            ended.notify_all()


def unbook(result: str, what: str) -> None:
    done.append(f"unbook {what}")


BOOK = Step(retries=20).undo(unbook)


@app.workflow
async def trip(ctx: Context) -> str:
    await ctx.step(BOOK, book, "flight")
    await ctx.sleep("1h")
    await ctx.step(BOOK, book, "hotel")
    try:
        message = await ctx.mailbox.next(GO)
    except RunCancelled:
        await ctx.step("clean-up", book, "clean-up")
        raise
    return message.body


@app.workflow
async def nothing_to_undo(ctx: Context) -> None:
    await ctx.step(book, "idea")
    await ctx.mailbox.next(GO)


@app.workflow
async def long_steps(ctx: Context) -> str:
    await ctx.step(BOOK, book, "flight")
    await asyncio.gather(ctx.step(Step("a").undo(unbook), slow, "hotel"), ctx.step("b", slow, "nothing"))
    return await ctx.step("next", book, "next")


@app.workflow
async def long_step(ctx: Context) -> str:
    return await ctx.step(slow, "x")


def test_before_the_first_turn_no_code_runs(world: World) -> None:
    env = world(app)
    handle = env.start(trip, id="r")
    handle.cancel("compensate")
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == []


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (30, ["book flight", "unbook flight"]),
        (90, ["book flight", "book hotel", "unbook hotel", "unbook flight"]),
    ],
)
def test_what_was_done_until_then_is_undone_and_no_clean_up_runs(
    world: World, minutes: int, expected: list[str]
) -> None:
    env = world(app)
    handle = env.start(trip, id="r")
    env.advance(minutes=minutes)
    handle.cancel("compensate")
    with pytest.raises(RunWasCancelled, match="cancelled by a client"):
        handle.result()
    assert done == expected
    assert env.get("r").status == "cancelled"
    assert env.repairs == 0


def test_with_nothing_to_undo_it_is_cancelled_at_once(world: World) -> None:
    env = world(app)
    handle = env.start(nothing_to_undo, id="r")
    env.run_until_idle()
    turns = env.calls.count("store.acquire")
    handle.cancel("compensate")
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert env.calls.count("store.acquire") == turns + 1


def during(env: TestEnvironment, workflow: Any, mode: Any, *, then: float = 0.2) -> Any:
    """Cancels while the step bodies of the run are running; they end a moment later."""

    def cancel() -> None:
        running.wait(5)
        env.cancel("r", mode)
        time.sleep(then)
        proceed.set()

    handle = env.start(workflow, id="r")
    thread = threading.Thread(target=cancel)
    thread.start()
    env.run_until_idle()
    thread.join()
    return handle


def watchful() -> TestEnvironment:
    return TestEnvironment(app, options=EngineOptions(parallel_runs=1, watch=0.05))


def test_running_steps_with_an_undo_are_waited_for_and_undone() -> None:
    env = watchful()
    with pytest.raises(RunWasCancelled):
        during(env, long_steps, "compensate").result()
    assert "book next" not in done
    assert [what for what in done if what != "book nothing"] == [
        "book flight", "book hotel", "unbook hotel", "unbook flight",
    ]  # fmt: skip


def test_a_graceful_cancel_is_seen_while_a_step_runs() -> None:
    env = watchful()
    with pytest.raises(RunWasCancelled):
        during(env, long_step, "graceful").result()
    assert [entry.key for entry in env.history("r")] == ["cancel^"]


def test_a_graceful_request_may_be_followed_by_a_compensating_one(world: World) -> None:
    env = world(app)
    handle = env.start(trip, id="r")
    env.advance(minutes=30)
    handle.cancel("graceful")
    handle.cancel("compensate")
    handle.cancel("graceful")
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == ["book flight", "unbook flight"]


def blocked(env: TestEnvironment) -> Any:
    """A run under code that does not know it."""
    handle = env.start(trip, id="r")
    env.advance(minutes=30)
    env.deploy(App("without"))
    env.advance(hours=1)
    with pytest.raises(RunBlocked):
        handle.result()
    return handle


def test_a_blocked_run_is_rolled_back_without_replay(world: World) -> None:
    env = world(app)
    handle = blocked(env)
    handle.cancel("compensate")
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == ["book flight", "unbook flight"]


def test_a_blocked_run_can_be_terminated(world: World) -> None:
    env = world(app)
    handle = blocked(env)
    handle.cancel("terminate")
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == ["book flight"]


def test_a_blocked_run_takes_a_graceful_request_when_it_goes_on(world: World) -> None:
    env = world(app)
    handle = blocked(env)
    handle.cancel("graceful")
    env.advance(hours=1)
    assert env.get("r").status == "blocked"
    env.deploy(app)
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert done == ["book flight"]


def test_cancelling_a_run_that_rolls_back_changes_nothing(world: World) -> None:
    env = world(app)
    handle = env.start(trip, id="r")
    env.advance(minutes=30)
    handle.cancel("compensate")
    env.mock(unbook).runs(lambda *_: handle.cancel("graceful"))
    with pytest.raises(RunWasCancelled):
        handle.result()
    with pytest.raises(RunEnded, match="cancelled"):
        handle.cancel("compensate")


def test_dying_anywhere_changes_nothing(world: World) -> None:
    def cancel(env: TestEnvironment, handle: Any) -> None:
        env.advance(minutes=90)
        handle.cancel("compensate")

    assert len(world(app).run_crash_matrix(trip, script=cancel).calls) > 15
