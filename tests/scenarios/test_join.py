"""A join waits for every branch, each suspended and resumed by itself, and reports every failure under its key."""

from typing import Any

import pytest

from durable import App, Branch, Context, JoinError, NonRetryableError, RunBlocked, Signal, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World
from tests.scenarios.replaying import played_cold

SURE = Step(retries=20)
app = App("joins")


def work(n: int) -> int:
    return n * n


def refuse(n: int) -> int:
    raise NonRetryableError(f"not {n}")


async def napping(ctx: Context, n: int) -> int:
    first = await ctx.step(SURE, work, n)
    await ctx.sleep(f"{n}m")
    return first + await ctx.step(SURE, work, n)


async def listening(ctx: Context, name: str) -> int:
    return (await ctx.mailbox.next(Signal(name, int))).body


async def failing(ctx: Context, n: int) -> int:
    await ctx.sleep(f"{n}m")
    return await ctx.step(SURE, refuse, n)


@app.workflow
async def three(ctx: Context) -> list[int]:
    return list(await ctx.join("all", *(Branch(f"b{n}", napping, n) for n in (3, 1, 2))))


@app.workflow
async def by_key(ctx: Context) -> dict[str, int]:
    async def one(ctx: Context) -> int:
        return await napping(ctx, 1)

    return await ctx.join("all", {"a": one, "b": one})


@app.workflow
async def some_fail(ctx: Context) -> list[str]:
    try:
        await ctx.join("all", Branch("good", napping, 9), Branch("bad", failing, 2), Branch("worse", failing, 1))
    except JoinError as error:
        await ctx.sleep("1h")
        return [*error.failures, *(str(each) for each in error.failures.values()), str(ctx.now().hour)]
    return []


@app.workflow
async def one_then_all(ctx: Context) -> list[int]:
    seen: list[int] = []

    async def noting(ctx: Context, n: int) -> None:
        seen.append(await napping(ctx, n))

    await ctx.join("all", *(Branch(f"b{n}", noting, n) for n in (3, 1, 2)))
    await ctx.sleep("1h")
    return seen


@app.workflow
async def two_hundred(ctx: Context) -> int:
    return sum(await ctx.join("all", *(Branch(f"b{n}", listening, f"go-{n}") for n in range(200))))


def deployment(*branches: str, name: str = "all") -> App[None]:
    changing = App("changing")

    @changing.workflow
    async def job(ctx: Context) -> list[int]:
        return list(await ctx.join(name, *(Branch(key, napping, 1) for key in branches)))

    return changing


def test_branches_come_in_the_order_in_which_they_are_written(world: World) -> None:
    env = world(app)
    assert env.start(three, id="r").result() == [18, 2, 8]
    assert env.repairs == 0


def test_like_typed_branches_are_a_dict(world: World) -> None:
    assert world(app).start(by_key, id="r").result() == {"a": 2, "b": 2}


def test_no_branch_is_cut_short_and_every_failure_is_there(world: World) -> None:
    result = world(app).start(some_fail, id="r").result()
    assert result[:2] == ["bad", "worse"]
    assert "not 2" in result[2]
    assert "not 1" in result[3]


def test_what_branches_change_around_them_is_there_after_every_replay() -> None:
    assert played_cold(one_then_all, app) == [2, 8, 18]


def test_a_run_sleeps_until_the_earliest_of_its_branches(world: World) -> None:
    env = world(app)
    env.start(three, id="r")
    env.run_until_idle()
    record = env.world.services.store.get("r")
    assert record is not None
    assert record.due_at == env.now.timestamp() + 60


def test_two_hundred_branches_wait_for_two_hundred_messages_in_any_order() -> None:
    env = TestEnvironment(app)
    handle = env.start(two_hundred, id="r")
    env.run_until_idle()
    for place in range(200):
        n = place * 77 % 200  # every number once, in no order
        handle.send(Signal(f"go-{n}", int), n)
        if place % 20 == 0:
            env.restart()
            env.run_until_idle()
    assert handle.result() == sum(range(200))
    assert env.repairs == 0


@pytest.mark.parametrize(
    "changed",
    [deployment("a", "b", "c"), deployment("a"), deployment("a", "c"), deployment("b", "a"), deployment("a", "b", name="every")],
    ids=["added", "removed", "renamed", "reordered", "join-renamed"],
)  # fmt: skip
def test_other_branches_are_a_divergence_before_anything_new_runs(world: World, changed: App[None]) -> None:
    env = world(deployment("a", "b"))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    mock = env.mock(work).returns(0)
    env.deploy(changed)
    with pytest.raises(RunBlocked, match="no longer matches"):
        handle.result()
    assert mock.calls == []
    env.mock(work).runs(work)
    env.deploy(deployment("a", "b"))
    assert handle.result() == [2, 2]


@pytest.mark.parametrize("workflow", [three, some_fail, one_then_all], ids=lambda one: one.name)
def test_every_prefix_of_its_history_replays(workflow: Any) -> None:
    played_cold(workflow, app)


@app.workflow
async def few(ctx: Context) -> list[int]:
    branches = (Branch("a", napping, 1), Branch("b", napping, 2), Branch("c", listening, "go"))
    return list(await ctx.join("all", *branches))


def go(env: TestEnvironment, handle: Any) -> None:
    env.advance(seconds=90)
    handle.send(Signal("go", int), 5, id="m")


def test_dying_anywhere_changes_nothing() -> None:
    TestEnvironment(app).run_crash_matrix(few, script=go)
