"""Troubles with versions and deployments that users of such systems have had, tried on this one."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Context, RunBlocked, RunFailed, Signal
from durable.local.template import Template, referred
from durable.testing import ReplayFailed, TestEnvironment, assert_replays

GO = Signal("go", str)


def work(n: object = 0) -> Any:
    return n


async def first(ctx: Context) -> list[str]:
    done = [await ctx.step("a", work, "a"), await ctx.step("b", work, "b")]
    await ctx.sleep("1 day")
    return [*done, await ctx.step("c", work, "c")]


async def reordered(ctx: Context) -> list[str]:
    done = [await ctx.step("b", work, "b"), await ctx.step("new", work, "new"), await ctx.step("a", work, "a")]
    await ctx.sleep("1 day")
    return done


def deployment(**versions: Callable[..., Any]) -> App[None]:
    """An app whose workflow "job" has these versions: `v1=fn`."""
    app = App("versions")
    for version, fn in versions.items():
        app.workflow(name="job", version=version.removeprefix("v"))(fn)
    return app


def test_VER_01_runs_end_on_the_version_that_they_began_on() -> None:
    env = TestEnvironment(deployment(v1=first))
    old = [env.start("job", id=f"old-{n}") for n in range(20)]
    env.run_until_idle()
    env.deploy(deployment(v1=first, v2=reordered))
    new = env.start("job", id="new")
    assert [handle.result() for handle in old] == [["a", "b", "c"]] * 20
    assert new.result() == ["b", "new", "a"]
    assert {env.get(handle.id).version for handle in old} == {"1"}


def test_VER_01_without_a_version_the_change_is_stopped_before_anything_new_has_run() -> None:
    env = TestEnvironment(deployment(v1=first))
    handle = env.start("job", id="r")
    env.run_until_idle()
    new = env.mock("new").returns("new")
    env.deploy(deployment(v1=reordered))
    with pytest.raises(RunBlocked, match="no longer matches"):
        handle.result()
    assert new.calls == []


def test_VER_02_VER_04_a_run_that_old_code_cannot_serve_waits_by_name_and_goes_on_with_the_new() -> None:
    both, old = deployment(v1=first, v2=reordered), deployment(v1=first)
    env = TestEnvironment(both)
    env.start("job", id="r")
    env.deploy(old)  # a container of the old code gets it
    env.run_until_idle()
    blocked = env.get("r")
    assert blocked.status == "blocked"
    assert 'version "2"' in str(blocked.reason)
    assert [row.id for row in env.list(status="blocked").runs] == ["r"]
    env.deploy(both)
    assert env.result("r") == ["b", "new", "a"]
    assert {entry.attempts for entry in env.history("r") if entry.kind == "step"} == {1}


def test_VER_03_no_schedule_or_event_source_depends_on_which_version_of_a_function_is_live(template: Template) -> None:
    """Versions are in the run's record and in the code; timers go to a queue, so no alias has to be named anywhere."""
    group = template.of_type("AWS::IAM::Role")["ScheduleRole"]
    (policy,) = group["Policies"]
    assert policy["PolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": {"Fn::GetAtt": ["RunsQueue", "Arn"]}}
    ]
    functions = template.of_type("AWS::Lambda::Function").keys()
    sources = template.of_type("AWS::Lambda::EventSourceMapping").values()
    assert {referred(source["FunctionName"]) for source in sources} <= functions
    assert not template.of_type("AWS::Lambda::Version")


async def listens(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


def test_VER_05_a_renamed_workflow_blocks_its_runs_by_name_and_keeps_their_messages() -> None:
    before, renamed, with_alias = App("x"), App("x"), App("x")
    before.workflow(name="old-name")(listens)
    renamed.workflow(name="new-name")(listens)
    for name in ("old-name", "new-name"):
        with_alias.workflow(name=name)(listens)
    env = TestEnvironment(before)
    handle = env.start("old-name", id="r")
    env.run_until_idle()
    env.deploy(renamed)
    handle.send(GO, "kept")
    env.run_until_idle()
    assert env.get("r").status == "blocked"
    assert "old-name" in str(env.get("r").reason)
    env.deploy(with_alias)
    assert handle.result() == "kept"


def test_VER_05_a_remote_step_that_no_worker_knows_is_named_and_tried_again() -> None:
    app = App("remote")

    @app.remote_step
    def renamed() -> str:
        return "done"

    @app.workflow
    async def calls(ctx: Context) -> str:
        return await ctx.call(renamed)

    env = TestEnvironment(app)
    handle = env.start(calls, id="r")
    while not env.world.services.steps.pending:
        env.world.deliver()
    known = app._remote_steps.pop("renamed")  # the workers have other code for a while
    env.restart()
    env.advance(seconds=5)
    assert env.get("r").status == "suspended"
    app._remote_steps["renamed"] = known
    env.restart()
    assert handle.result() == "done"
    failed = [entry.error for entry in env.history("r") if entry.mark == "@1"]
    assert not failed or "renamed" in str(failed[0])


class OrderV1(BaseModel):
    sku: str
    colour: str = "red"


class OrderV2(BaseModel):
    sku: str
    count: int = 1


class OrderV3(BaseModel):
    sku: str
    needed: int


def taking(model: type[BaseModel]) -> App[None]:
    app = App("orders")

    async def buy(ctx: Context, order: BaseModel) -> str:
        await ctx.sleep("1 day")
        return order.model_dump_json()

    buy.__annotations__["order"] = model
    app.workflow(name="buy")(buy)
    return app


def test_VER_06_of_a_stored_input_defaults_fill_and_unknown_fields_are_ignored_and_a_missing_one_is_named() -> None:
    env = TestEnvironment(taking(OrderV1))
    handle = env.start("buy", {"sku": "cup", "colour": "blue"}, id="r")
    env.run_until_idle()
    env.deploy(taking(OrderV3))
    with pytest.raises(RunBlocked, match="needed"):
        handle.result()
    env.deploy(taking(OrderV2))
    assert handle.result() == '{"sku":"cup","count":1}'


def gated(latest: int, *, gate: bool = True) -> App[None]:
    app = App("gates")

    @app.workflow(name="rounds")
    async def rounds(ctx: Context) -> list[int]:
        seen: list[int] = []
        for n in range(4):
            if gate:
                seen.append(ctx.get_version(f"change-{n // 2}-{n}", latest))
            await ctx.sleep("1h", name=f"pause-{n}")
        return seen

    return app


def test_VER_07_a_gate_has_one_value_for_a_run_and_is_old_where_the_run_had_passed_it() -> None:
    env = TestEnvironment(gated(1, gate=False))
    handle = env.start("rounds", id="r")
    env.advance(minutes=90)
    env.deploy(gated(2))
    env.advance(hours=1)
    env.restart()
    env.deploy(gated(3))
    assert handle.result() == [1, 1, 2, 3]


def test_VER_07_removing_a_gate_that_an_open_run_has_passed_is_caught_by_the_replay_test() -> None:
    env = TestEnvironment(gated(2))
    env.start("rounds", id="r")
    env.run_until_idle()
    with pytest.raises(ReplayFailed, match=r"version.*change-0-0"):
        assert_replays(env.export("r"), gated(2, gate=False))


def test_VER_04_a_failed_run_of_a_version_that_is_gone_is_still_readable() -> None:
    app = App("gone")

    @app.workflow(name="job")
    async def fails(ctx: Context) -> None:
        raise ValueError("as recorded")

    env = TestEnvironment(app)
    handle = env.start("job", id="r")
    env.run_until_idle()
    env.deploy(deployment(v2=first))
    with pytest.raises(RunFailed, match="as recorded"):
        handle.result()
