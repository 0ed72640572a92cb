"""A run that reaches its workflow's timeout is ended like a cancelled one: its steps are undone, then it has timed out."""

from typing import Any

import pytest

from durable import App, Context, RunBlocked, RunTimedOut, Signal, Step
from tests.scenarios.conftest import World

app = App("timeouts")
GO = Signal("go", str)
done: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()


def book(what: str) -> str:
    done.append(f"book {what}")
    return what


def unbook(result: str, what: str) -> None:
    done.append(f"unbook {what}")


@app.workflow(timeout="2h")
async def waits(ctx: Context) -> str:
    return (await ctx.mailbox.next(GO)).body


@app.workflow(timeout="2h")
async def books(ctx: Context) -> str:
    await ctx.step(Step(retries=20).undo(unbook), book, "hotel")
    await ctx.sleep("1 day")
    return "slept"


@app.workflow(timeout="2h")
async def short(ctx: Context) -> str:
    await ctx.sleep("1h")
    return "in time"


def test_a_waiting_run_times_out_by_its_own_timer(world: World) -> None:
    env = world(app)
    handle = env.start(waits, id="r")
    began = env.now
    with pytest.raises(RunTimedOut, match="reached its timeout"):
        handle.result()
    assert (env.now - began).total_seconds() == pytest.approx(7200, abs=5)
    assert env.get("r").status == "timed_out"
    assert env.repairs == 0


def test_what_it_has_done_is_undone_first(world: World) -> None:
    env = world(app)
    with pytest.raises(RunTimedOut):
        env.start(books, id="r").result()
    assert done == ["book hotel", "unbook hotel"]
    assert env.repairs == 0


def test_a_run_that_ends_in_time_does_not_time_out(world: World) -> None:
    env = world(app)
    assert env.start(short, id="r").result() == "in time"
    env.advance(days=1)
    assert env.get("r").status == "completed"


def test_it_counts_from_the_first_turn(world: World) -> None:
    env = world(app)
    handle = env.start(short, id="r")
    env.outage("5h")
    assert handle.result() == "in time"


def test_a_message_does_not_prolong_it(world: World) -> None:
    env = world(app)
    handle = env.start(books, id="r")
    env.advance(minutes=90)
    handle.send("whatever", 1)
    env.advance(minutes=31)
    with pytest.raises(RunTimedOut):
        handle.result()


def test_time_in_which_it_is_blocked_does_not_count(world: World) -> None:
    env = world(app)
    handle = env.start(waits, id="r")
    env.run_until_idle()
    env.advance(minutes=30)
    env.deploy(App("without"))
    handle.send(GO, "go")
    with pytest.raises(RunBlocked):
        handle.result()
    env.advance(days=3)
    env.deploy(app)
    assert handle.result() == "go"


def test_dying_anywhere_changes_nothing(world: World) -> None:
    assert len(world(app).run_crash_matrix(books).calls) > 10


def test_a_late_turn_does_not_run_the_code(world: World) -> None:
    env = world(app)
    handle: Any = env.start(waits, id="r")
    env.run_until_idle()
    env.outage("3h")
    handle.send(GO, "late")
    with pytest.raises(RunTimedOut):
        handle.result()
    assert env.get("r").undelivered == 1
