"""The result of an ephemeral step is written with the next record of its scope: one write for both."""

from __future__ import annotations

from durable import App, Context, Step
from durable.testing import TestEnvironment

app = App("ephemeral")
DRAFT = Step(ephemeral=True)


def draft(text: str) -> str:
    return f"draft of {text}"


def publish(text: str) -> str:
    return f"published {text}"


def fail(text: str) -> str:
    raise ValueError(text)


@app.workflow
async def article(ctx: Context, title: str) -> str:
    first = await ctx.step(DRAFT, draft, title)
    second = await ctx.step(DRAFT, draft, first)
    return await ctx.step(publish, second)


@app.workflow
async def only_drafts(ctx: Context, title: str) -> str:
    text = await ctx.step(DRAFT, draft, title)
    await ctx.sleep("1h")
    return await ctx.step(DRAFT, draft, text)


@app.workflow
async def refused(ctx: Context, title: str) -> str:
    return await ctx.step(Step(ephemeral=True, retries=0), fail, title)


def writes(env: TestEnvironment) -> int:
    return env.calls.count("store.put_entry")


def test_two_ephemeral_steps_and_a_step_are_one_write() -> None:
    with TestEnvironment(app) as env:
        assert env.start(article, "tea", id="r").result() == "published draft of draft of tea"
        assert writes(env) == 1
        assert [entry.location for entry in env.history("r")] == ["draft", "draft#2", "publish"]


def test_a_crash_before_that_write_runs_them_again() -> None:
    with TestEnvironment(app) as env:
        mock = env.mock(draft).returns("one", "two", "three", "four")
        env.crash_at(env_call_of_first_write())
        assert env.start(article, "tea", id="r").result() == "published four"
        assert len(mock.calls) == 4


def env_call_of_first_write() -> int:
    with TestEnvironment(app) as env:
        env.start(article, "tea", id="r").result()
        return env.calls.index("store.put_entry") + 1


def test_what_is_held_is_written_before_the_run_sleeps() -> None:
    with TestEnvironment(app) as env:
        mock = env.mock(draft).returns("kept", "last")
        handle = env.start(only_drafts, "tea", id="r")
        env.run_until_idle()
        env.restart()
        assert handle.result() == "last"
        assert [args for args, _ in mock.calls] == [("tea",), ("kept",)]


def test_a_failure_is_recorded_at_once() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(refused, "tea", id="r")
        env.run_until_idle()
        assert handle.status() == "failed"
        assert writes(env) == 1


def test_a_crash_at_every_call_gives_the_same_outcome() -> None:
    TestEnvironment(app).run_crash_matrix(only_drafts, "tea")
