"""What a run publishes can be read while it goes on and after it has ended, and is written once."""

import contextlib
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Context, InvalidName, NotStorable, RunNotFound, Signal, StateKey, UndecodableHistory
from durable.testing import TestEnvironment

PROGRESS = StateKey("progress", float)
GO = Signal("go", int)


class Stage(BaseModel):
    name: str


STAGE = StateKey("stage", Stage)
app = App("published")


@app.workflow
async def publishing(ctx: Context) -> int:
    ctx.set_state(PROGRESS, 0.0)
    ctx.set_state(STAGE, Stage(name="waiting"))
    first = await ctx.wait_for_signal(GO)
    ctx.set_state(PROGRESS, 0.5)
    second = await ctx.wait_for_signal(GO)
    ctx.set_state(PROGRESS, 1.0)
    ctx.set_state("note", {"sum": [first, second]})
    return first + second


@app.workflow
async def hasty(ctx: Context) -> None:
    for n in range(5):
        ctx.set_state("n", n)
    await ctx.sleep(0)


@app.workflow
async def wrong(ctx: Context) -> str:
    with contextlib.suppress(NotStorable):
        ctx.set_state("k", object())
    ctx.set_state("review:x", 1)
    return "never"


def writes(env: TestEnvironment) -> int:
    return sum(call == "store.put_state" for call in env.calls)


def test_a_value_is_read_while_the_run_goes_on_and_after_its_end(world: Any) -> None:
    with world(app) as env:
        handle = env.start(publishing, id="p")
        env.run_until_idle()
        assert (handle.get_state(PROGRESS), handle.get_state(STAGE)) == (0.0, Stage(name="waiting"))
        assert handle.get_state("note") is None
        handle.send(GO, 1)
        env.run_until_idle()
        assert handle.get_state(PROGRESS) == 0.5
        handle.send(GO, 2)
        assert handle.result() == 3
        assert handle.get_state(PROGRESS) == 1.0
        assert env.states("p") == {"progress": 1.0, "stage": {"name": "waiting"}, "note": {"sum": [1, 2]}}


def test_replay_does_not_write_again_what_an_earlier_turn_has_published() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(publishing)
        env.run_until_idle()
        assert writes(env) == 2
        env.restart()
        for signal in (1, 2):
            handle.send(GO, signal)
        assert handle.result() == 3
        assert writes(env) == 2 + 3


def test_of_several_values_before_one_write_the_last_is_stored() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(hasty)
        handle.result()
        assert handle.get_state("n") == 4
        assert writes(env) == 1


def test_newly_deployed_code_publishes_what_it_sets_before_the_place_where_the_run_waits() -> None:
    newer = App("published")

    @newer.workflow(name="publishing")
    async def with_a_note(ctx: Context) -> int:
        ctx.set_state("new", True)
        first = await ctx.wait_for_signal(GO)
        return first + await ctx.wait_for_signal(GO)

    with TestEnvironment(app) as env:
        handle = env.start(publishing)
        env.run_until_idle()
        env.deploy(newer)
        handle.send(GO, 1)
        env.run_until_idle()
        assert handle.get_state("new") is True
        handle.send(GO, 1)
        assert env.result(handle.id) == 2
        assert with_a_note.name == "publishing"


def test_what_cannot_be_stored_and_reserved_keys_are_refused_at_the_call() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(wrong)
        env.run_until_idle()
        run = env.get(handle.id)
        assert run.error is not None
        assert (run.status, run.error.type) == ("failed", InvalidName.__name__)


def test_a_value_that_does_not_fit_the_readers_type_is_refused() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(publishing, id="p")
        env.run_until_idle()
        with pytest.raises(UndecodableHistory, match='state "stage" of run "p"'):
            handle.get_state(StateKey("stage", int))
        with pytest.raises(RunNotFound):
            env.get_state("q", PROGRESS)
