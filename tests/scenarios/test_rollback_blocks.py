"""A rollback covers steps of loops, joins, races and try blocks, pruned iterations included."""

import asyncio
import threading

import pytest

from durable import App, Branch, Break, Context, Continue, NonRetryableError, RetryAfter, RunFailed, Step
from tests.scenarios.conftest import World

app = App("rollback-blocks")
done: list[str] = []
proceed = threading.Event()


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()
    proceed.clear()


def book(what: str) -> str:
    done.append(f"book {what}")
    return what


def unbook(result: str, what: str) -> None:
    assert result == what
    done.append(f"unbook {what}")


def slow_book(what: str) -> str:
    proceed.wait(5)
    done.append(f"book {what}")
    return what


def refuse() -> None:
    proceed.set()
    raise NonRetryableError("no")


BOOK = Step(retries=0).undo(unbook)


@app.workflow
async def in_a_loop(ctx: Context) -> None:
    async def body(ctx: Context, night: int) -> Break[int] | Continue[int]:
        await ctx.step(BOOK, book, f"night {night}")
        return Break(night) if night == 5 else Continue(night + 1)

    await ctx.loop("nights", body, state=0, history=2)
    await ctx.sleep("1h")
    await ctx.step(refuse)


@app.workflow
async def in_an_unfinished_loop(ctx: Context) -> None:
    async def body(ctx: Context, night: int) -> Continue[int]:
        await ctx.step(BOOK, book, f"night {night}")
        await ctx.sleep("1h")
        if night == 4:
            await ctx.step(refuse)
        return Continue(night + 1)

    await ctx.loop("nights", body, state=0, history=2)


@app.workflow
async def checkpoints_in_a_loop(ctx: Context) -> None:
    async def body(ctx: Context, night: int) -> Break[int] | Continue[int]:
        await ctx.step(BOOK, book, f"night {night}")
        if night == 2:
            await ctx.rollback_checkpoint("half")
        return Break(night) if night == 5 else Continue(night + 1)

    await ctx.loop("nights", body, state=0, history=2)
    await ctx.sleep("1h")
    await ctx.step(refuse)


@app.workflow
async def in_a_join(ctx: Context) -> None:
    async def one(ctx: Context, what: str) -> str:
        return await ctx.step(BOOK, book, what)

    async def other(ctx: Context) -> None:
        await ctx.step(refuse)

    await ctx.join("both", Branch("good", one, "hotel"), Branch("bad", other))


@app.workflow
async def in_a_race(ctx: Context) -> None:
    async def winner(ctx: Context) -> str:
        return await ctx.step(BOOK, book, "fast")

    async def loser(ctx: Context) -> str:
        await ctx.step(BOOK, book, "slow")
        await ctx.sleep("1 day")
        return "never"

    await ctx.race("first", Branch("loser", loser), Branch("winner", winner))
    await ctx.sleep("1h")
    await ctx.step(refuse)


@app.workflow
async def loser_runs_on(ctx: Context) -> None:
    async def winner(ctx: Context) -> None:
        await ctx.sleep(0.05)

    async def loser(ctx: Context) -> str:
        return await ctx.step(BOOK, slow_book, "late")

    await ctx.race("first", Branch("loser", loser), Branch("winner", winner))
    await ctx.step(refuse)


@app.workflow
async def in_a_try_block(ctx: Context) -> None:
    async def body(ctx: Context) -> None:
        await ctx.step(BOOK, book, "hotel")
        await ctx.step(refuse)

    await ctx.try_block("attempt", body)
    await ctx.step(BOOK, book, "hostel")
    await ctx.try_step(refuse)
    raise ValueError("all the same")


@app.workflow
async def running_sibling(ctx: Context) -> None:
    await asyncio.gather(ctx.step(BOOK, slow_book, "hotel"), ctx.step("no", refuse))


@app.workflow
async def running_member_of_a_task_group(ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.step(BOOK, slow_book, "hotel"))
        group.create_task(ctx.step("no", refuse))


@pytest.mark.parametrize("workflow", [in_a_loop, in_an_unfinished_loop], ids=lambda workflow: workflow.name)
def test_every_iteration_of_a_loop_is_undone_pruned_ones_too(world: World, workflow) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(workflow, id="r").result()
    nights = range(6 if workflow is in_a_loop else 5)
    assert done == [f"book night {n}" for n in nights] + [f"unbook night {n}" for n in reversed(nights)]


def test_pruned_iterations_are_undone_once_however_often_the_rollback_is_suspended(world: World) -> None:
    env = world(app)
    failures = iter([True, False] * 50)

    def unreliable(result: str, what: str) -> None:
        if next(failures):
            raise RetryAfter("5m", "busy")
        unbook(result, what)

    env.mock(unbook).runs(unreliable)
    with pytest.raises(RunFailed):
        env.start(in_a_loop, id="r").result()
    assert done[6:] == [f"unbook night {n}" for n in reversed(range(6))]


def test_a_checkpoint_of_a_pruned_iteration_counts(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(checkpoints_in_a_loop, id="r").result()
    assert done[6:] == ["unbook night 5", "unbook night 4", "unbook night 3"]


def test_after_a_retry_a_loop_whose_iterations_were_undone_begins_anew(world: World) -> None:
    env = world(app)
    handle = env.start(in_a_loop, id="r")
    with pytest.raises(RunFailed):
        handle.result()
    done.clear()
    env.mock(refuse).returns(None)
    env.retry("r")
    handle.result()
    assert done == [f"book night {n}" for n in range(6)]


def test_branches_of_a_join_are_undone_when_another_branch_fails(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(in_a_join, id="r").result()
    assert done == ["book hotel", "unbook hotel"]
    assert env.get("r").failed_at == ("both/bad/refuse",)


def test_winners_and_losers_of_a_race_are_undone(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(in_a_race, id="r").result()
    assert sorted(done) == ["book fast", "book slow", "unbook fast", "unbook slow"]


def test_a_losers_step_that_still_runs_is_waited_for_and_undone(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(loser_runs_on, id="r").result()
    assert done == ["book late", "unbook late"]


def test_what_a_try_block_did_is_undone_though_its_failure_was_handled(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed, match="all the same"):
        env.start(in_a_try_block, id="r").result()
    assert done == ["book hotel", "book hostel", "unbook hostel", "unbook hotel"]


@pytest.mark.parametrize(
    "workflow", [running_sibling, running_member_of_a_task_group], ids=lambda workflow: workflow.name
)
def test_a_running_sibling_is_waited_for_recorded_and_undone(world: World, workflow) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(workflow, id="r").result()
    assert done == ["book hotel", "unbook hotel"]
    assert "slow_book" in [entry.key for entry in env.history("r")]


def test_the_winner_of_a_race_does_not_wait_for_a_losers_step(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed, match="no"):
        env.start(loser_runs_on, id="r").result()
    keys = [entry.key for entry in env.history("r")]
    assert keys.index("first/winner/sleep") < keys.index("refuse") < keys.index("first/loser/slow_book")
