"""A run whose workflow or version is not deployed is blocked, not failed, and goes on once the code is back."""

import pytest

from durable import App, Context, RunBlocked
from tests.scenarios.conftest import World


async def job(ctx: Context) -> str:
    await ctx.sleep(60)
    return "done"


def deployment(*versions: str) -> App[None]:
    app = App("versions")
    for version in versions:
        app.workflow(name="job", version=version)(job)
    return app


def test_ver_05_a_version_that_is_gone_blocks_and_its_return_heals(world: World) -> None:
    env = world(deployment("1"))
    handle = env.start(deployment("1").newest("job"), id="r")
    env.run_until_idle()
    env.deploy(deployment("2"))
    with pytest.raises(RunBlocked, match='version "1"'):
        handle.result()
    env.deploy(deployment("1", "2"))
    assert handle.result() == "done"


def test_ver_02_new_runs_take_the_newest_version_and_old_ones_keep_theirs(world: World) -> None:
    env = world(deployment("1"))
    old = env.start(deployment("1").newest("job"), id="old")
    env.run_until_idle()
    env.deploy(deployment("1", "2"))
    new = env.start(deployment("1", "2").newest("job"), id="new")
    assert [old.result(), new.result()] == ["done", "done"]
    assert [env.get(run_id).version for run_id in ("old", "new")] == ["1", "2"]
