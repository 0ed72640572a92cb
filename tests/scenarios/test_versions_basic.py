"""A version pins the branch of the code that a run has taken; new code before recorded work needs one."""

import pytest

from durable import App, Break, Context, Continue, RunBlocked, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World
from tests.scenarios.replaying import played_cold

SURE = Step(retries=20)


def work(n: int) -> int:
    return n


async def original(ctx: Context) -> str:
    await ctx.step("first", work, 1)
    await ctx.sleep("1h")
    return "old"


async def guarded(ctx: Context) -> str:
    if ctx.get_version("fraud-check", 2) >= 2:
        await ctx.step("check", work, 2)
    await ctx.step("first", work, 1)
    await ctx.sleep("1h")
    return "new" if ctx.patched("ending") else "old"


async def unguarded(ctx: Context) -> str:
    await ctx.step("check", work, 2)
    return await original(ctx)


async def looping(ctx: Context) -> int:
    async def body(ctx: Context, n: int) -> Break[int] | Continue[int]:
        version = ctx.get_version("price", 3)
        await ctx.step(SURE, work, n)
        await ctx.sleep("1m")
        return Break(version) if n == 4 else Continue(n + 1)

    return await ctx.loop("poll", body, state=0, history=2)


def deployment(fn: object) -> App[None]:
    app = App("versions")
    app.workflow(name="job")(fn)  # type: ignore[call-overload]
    return app


def test_a_run_of_the_old_code_takes_the_old_branch(world: World) -> None:
    env = world(deployment(original))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    env.deploy(deployment(guarded))
    assert handle.result() == "new"  # the patch at the end lies after all that the run has done
    assert [entry.location for entry in env.history("r") if entry.kind == "step"] == ["first"]


def test_a_new_run_takes_the_new_branch_and_stays_on_it(world: World) -> None:
    env = world(deployment(guarded))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    env.restart()
    assert handle.result() == "new"
    assert [entry.location for entry in env.history("r") if entry.kind == "step"] == ["check", "first"]


def test_without_a_guard_the_run_is_blocked_and_heals(world: World) -> None:
    env = world(deployment(original))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    mock = env.mock("check").returns(0)
    env.deploy(deployment(unguarded))
    with pytest.raises(RunBlocked, match="first"):
        handle.result()
    assert mock.calls == []
    env.deploy(deployment(original))
    assert handle.result() == "old"


@pytest.mark.parametrize("fn", [guarded, looping], ids=["guarded", "looping"])
def test_every_prefix_replays_and_dying_anywhere_changes_nothing(fn: object) -> None:
    app = deployment(fn)
    assert played_cold(app.newest("job"), app) in ("new", 3)


def test_dying_anywhere_changes_nothing() -> None:
    app = deployment(looping)
    TestEnvironment(app).run_crash_matrix(app.newest("job"))
