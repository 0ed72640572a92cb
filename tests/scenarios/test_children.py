"""A run starts others, waits for them, and learns of every way in which they can end."""

import asyncio
from typing import Any

import pytest

from durable import (
    App,
    Branch,
    Break,
    ChildCancelled,
    ChildFailed,
    ChildTimedOut,
    Context,
    Continue,
    Failed,
    NonRetryableError,
    Ok,
    RunAlreadyExists,
    RunFailed,
    Signal,
)
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

GO = Signal("go", str)

app = App("children")


class CardDeclined(Exception):
    def __init__(self, *, code: str) -> None:
        super().__init__(code)
        self.code = code


def charge(amount: int) -> int:
    if amount < 0:
        raise CardDeclined(code="negative")
    return amount * 2


@app.workflow
async def double(ctx: Context, amount: int) -> int:
    return await ctx.step(charge, amount)


@app.workflow
async def waiting(ctx: Context, name: str) -> str:
    return f"{name}: {await ctx.wait_for_signal(GO)}"


@app.workflow(timeout="1h")
async def impatient(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def parent(ctx: Context, amount: int) -> int:
    return await ctx.child(double, amount) + 1


@app.workflow
async def family(ctx: Context, amounts: list[int]) -> list[int]:
    return list(await asyncio.gather(*(ctx.child(double, amount) for amount in amounts)))


@app.workflow
async def handles(ctx: Context, amount: int) -> list[int]:
    handle = await ctx.start_child(double, amount)
    first = await handle.result()
    return [first, await handle.result()]


def test_a_child_gives_its_output(world: World) -> None:
    with world(app) as env:
        handle = env.start(parent, 4, id="p-1")
        assert handle.result() == 9
        child = env.get("p-1.double")
        assert (child.status, child.parent, child.outbox) == ("completed", "p-1", None)


def test_children_run_side_by_side(world: World) -> None:
    with world(app) as env:
        assert env.start(family, [1, 2, 3]).result() == [2, 4, 6]


def test_a_started_child_can_be_asked_twice(world: World) -> None:
    with world(app) as env:
        assert env.start(handles, 3).result() == [6, 6]


def failing(code: str) -> int:
    raise CardDeclined(code=code)


@app.workflow
async def declined(ctx: Context, code: str) -> int:
    return await ctx.step(failing, code)


@app.workflow
async def own_error(ctx: Context) -> int:
    raise NonRetryableError("nothing to do")


@app.workflow
async def tries(ctx: Context, code: str) -> str:
    try:
        await ctx.child(declined, code)
    except CardDeclined as error:
        assert isinstance(error, ChildFailed)  # noqa: PT017 - it tells type checkers what the error is besides
        return f"{error.status} {error.code}"
    return "paid"


@app.workflow
async def tries_block(ctx: Context, code: str) -> str:
    async def body(ctx: Context) -> int:
        return await ctx.child(declined, code)

    outcome = await ctx.try_block("pay", body)
    match outcome:
        case Ok():
            return "paid"
        case Failed(source=source, error=error):
            return f"{source} {error.type}"


@app.workflow
async def tells(ctx: Context, id: str) -> str:
    try:
        return await ctx.child(waiting, "w", id=id)
    except ChildCancelled:
        return "cancelled"


@app.workflow
async def waits_for_the_impatient(ctx: Context) -> str:
    try:
        return await ctx.child(impatient)
    except ChildTimedOut as error:
        return error.status


@app.workflow
async def fails_with_it(ctx: Context) -> int:
    return await ctx.child(own_error)


def test_an_error_of_the_child_is_caught_by_its_class(world: World) -> None:
    with world(app) as env:
        handle = env.start(tries, "c-1")
        assert handle.result() == "failed c-1"


def test_a_try_block_takes_the_failure_of_a_child(world: World) -> None:
    with world(app) as env:
        assert env.start(tries_block, "c-1").result() == "child ChildFailed"


def test_a_child_that_is_cancelled_tells_its_parent(world: World) -> None:
    with world(app) as env:
        handle = env.start(tells, "w-1")
        env.run_until_idle()
        env.cancel("w-1")
        assert handle.result() == "cancelled"


def test_a_child_that_is_terminated_tells_its_parent(world: World) -> None:
    with world(app) as env:
        handle = env.start(tells, "w-1")
        env.run_until_idle()
        env.cancel("w-1", "terminate")
        assert handle.result() == "cancelled"


def test_a_child_that_times_out_tells_its_parent(world: World) -> None:
    with world(app) as env:
        assert env.start(waits_for_the_impatient).result() == "timed_out"


def test_a_failure_that_the_parent_does_not_handle_fails_it_too(world: World) -> None:
    with world(app) as env:
        handle = env.start(fails_with_it)
        with pytest.raises(RunFailed, match="nothing to do"):
            handle.result()


# Who ends first


@app.workflow
async def leaves(ctx: Context, close: str) -> str:
    await ctx.start_child(waiting, "left", id="left", parent_close="abandon" if close == "abandon" else "cancel")
    await ctx.wait_for_signal(GO)
    return "gone"


@pytest.mark.parametrize(("close", "status"), [("cancel", "cancelled"), ("abandon", "suspended")])
def test_what_becomes_of_a_child_whose_parent_ends(world: World, close: str, status: str) -> None:
    with world(app) as env:
        handle = env.start(leaves, close, id="p-1")
        env.run_until_idle()
        handle.send(GO, "")
        assert handle.result() == "gone"
        env.run_until_idle()
        assert env.get("left").status == status


@pytest.mark.parametrize("mode", ["graceful", "compensate", "terminate"])
def test_cancelling_reaches_the_children(world: World, mode: Any) -> None:
    with world(app) as env:
        handle = env.start(tells, "w-1", id="p-1")
        env.run_until_idle()
        handle.cancel(mode)
        env.run_until_idle()
        assert (env.get("p-1").status, env.get("w-1").status) == ("cancelled", "cancelled")
        assert env.get("p-1").outbox is None


@app.workflow
async def races(ctx: Context) -> str:
    async def by_child(ctx: Context) -> str:
        return await ctx.child(waiting, "slow", id="slow")

    async def by_time(ctx: Context) -> str:
        await ctx.sleep("1h")
        return "time"

    winner = await ctx.race("first", Branch("child", by_child), Branch("time", by_time))
    await ctx.sleep("1h")
    return winner.value


def test_a_child_that_loses_a_race_is_cancelled(world: World) -> None:
    with world(app) as env:
        handle = env.start(races)
        env.advance("90m")
        assert env.get("slow").status == "cancelled"
        assert handle.result() == "time"


@app.workflow
async def stops_it(ctx: Context) -> str:
    handle = await ctx.start_child(waiting, "w", id="w-9")
    await handle.cancel()
    try:
        return await handle.result()
    except ChildCancelled as error:
        return error.status


def test_a_handle_cancels_its_child(world: World) -> None:
    with world(app) as env:
        assert env.start(stops_it).result() == "cancelled"


# Two parents, ids, continuations


def test_two_parents_wait_for_one_child(world: World) -> None:
    with world(app) as env:
        first, second = env.start(tells, "w-1"), env.start(tells, "w-1")
        env.run_until_idle()
        env.send("w-1", GO, "now")
        assert (first.result(), second.result()) == ("w: now", "w: now")


def test_a_parent_waits_for_a_run_that_has_ended(world: World) -> None:
    with world(app) as env:
        env.start(waiting, "w", id="w-1").send(GO, "now")
        env.run_until_idle()
        assert env.get("w-1").status == "completed"
        assert env.start(tells, "w-1").result() == "w: now"


@app.workflow
async def wants_another(ctx: Context) -> str:
    try:
        return await ctx.child(waiting, "another", id="w-1")
    except RunAlreadyExists as error:
        return type(error).__name__
    except ChildFailed as error:
        return f"failed: {error.error.type}"


def test_an_id_with_another_input_is_refused(world: World) -> None:
    with world(app) as env:
        env.start(waiting, "w", id="w-1")
        assert env.start(wants_another).result() == "RunAlreadyExists"


@app.workflow
async def counts_down(ctx: Context, n: int) -> str:
    if n == 0:
        return "over"
    await ctx.sleep("1m")
    return await ctx.continue_as_new(counts_down, n - 1)


@app.workflow
async def waits_for_a_line(ctx: Context, n: int) -> str:
    return await ctx.child(counts_down, n, id="line")


def test_a_child_that_continues_as_new_tells_its_end(world: World) -> None:
    with world(app) as env:
        first = env.start(waits_for_a_line, 3)
        env.advance("90s")
        second = env.start(waits_for_a_line, 3)
        assert (first.result(), second.result()) == ("over", "over")


@app.workflow
async def large_family(ctx: Context, count: int) -> int:
    results = await asyncio.gather(*(ctx.child(double, n) for n in range(count)))
    return sum(results)


@app.workflow
async def flaky_parent(ctx: Context) -> int:
    return await ctx.child(picky)


MOOD = {"good": False}


def look() -> int:
    if not MOOD["good"]:
        raise NonRetryableError("bad mood")
    return 7


@app.workflow
async def picky(ctx: Context) -> int:
    return await ctx.step(look)


def test_a_retry_starts_the_failed_child_anew(world: World) -> None:
    MOOD["good"] = False
    with world(app) as env:
        handle = env.start(flaky_parent, id="p-1")
        with pytest.raises(RunFailed):
            handle.result()
        MOOD["good"] = True
        env.retry("p-1")
        assert handle.result() == 7


@app.workflow
async def flaky_parent_with_handle(ctx: Context) -> int:
    handle = await ctx.start_child(picky)
    return await handle.result()


def test_a_retry_of_the_parent_retries_the_child_of_its_handle(world: World) -> None:
    MOOD["good"] = False
    with world(app) as env:
        handle = env.start(flaky_parent_with_handle, id="p-1")
        with pytest.raises(RunFailed):
            handle.result()
        MOOD["good"] = True
        env.retry("p-1")
        assert handle.result() == 7
        assert env.get("p-1.picky").status == "completed"


def test_a_parent_adopts_a_child_that_was_retried_before_it(world: World) -> None:
    MOOD["good"] = False
    with world(app) as env:
        handle = env.start(flaky_parent, id="p-1")
        with pytest.raises(RunFailed):
            handle.result()
        MOOD["good"] = True
        env.retry("p-1.picky")
        env.run_until_idle()
        MOOD["good"] = False
        env.retry("p-1")
        assert handle.result() == 7


def test_a_family_of_a_thousand(world: World) -> None:
    with world(app) as env:
        count = 1000 if world is TestEnvironment else 30
        assert env.start(large_family, count).result() == count * (count - 1)


@app.workflow
async def starts_many(ctx: Context, count: int) -> str:
    async def one(ctx: Context, n: int) -> Continue[int] | Break[str]:
        if n == count:
            return Break("done")
        await ctx.start_child(waiting, "w", id=f"many-{n}")
        await ctx.sleep("1m")
        return Continue(n + 1)

    return await ctx.loop("many", one, state=0, history=2)


def test_children_of_iterations_that_are_gone_end_with_the_run(world: World) -> None:
    with world(app) as env:
        assert env.start(starts_many, 7).result() == "done"
        env.run_until_idle()
        assert {env.get(f"many-{n}").status for n in range(7)} == {"cancelled"}


def test_a_run_names_its_children(world: World) -> None:
    with world(app) as env:
        env.start(leaves, "cancel", id="p-1")
        env.start(family, [1, 2], id="p-2").result()
        env.run_until_idle()
        assert env.children("p-1") == ["left"]
        assert [env.get(child).workflow for child in env.children("p-2")] == ["double", "double"]
