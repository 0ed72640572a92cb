"""A condition is checked by a recorded step, round after round, until it holds, and no longer than asked."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from durable import App, Backoff, Break, Context, Continue, RunFailed, Step, WaitTimeout
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("conditions")


@dataclass(frozen=True)
class Label:
    url: str


@dataclass(frozen=True)
class Cursor:
    page: int


def find_label() -> Label | None:
    return None


def next_page(cursor: Cursor) -> Break[str] | Continue[Cursor]:
    return Break(f"page {cursor.page}") if cursor.page == 45 else Continue(Cursor(cursor.page + 1))


@app.workflow
async def ready(ctx: Context) -> str:
    label = await ctx.wait_until("label", find_label, every="5m", timeout="1h")
    return label.url


@app.workflow
async def tried(ctx: Context) -> str:
    try:
        await ctx.wait_until(Step("label", retries=2), find_label, every=Backoff("1m", factor=2, max="1h"), attempts=4)
    except WaitTimeout as timeout:
        return str(timeout)
    return "found"


@app.workflow
async def paging(ctx: Context) -> str:
    return await ctx.wait_until(Step(retries=20), next_page, state=Cursor(0), every="1m")


@app.workflow
async def short_paging(ctx: Context) -> str:
    return await ctx.wait_until(Step(retries=20), next_page, state=Cursor(42), every="1m")


@app.workflow
async def timing_out(ctx: Context) -> str:
    try:
        await ctx.wait_until(Step("label", retries=20), find_label, every="5m", timeout="12m")
    except TimeoutError as timeout:
        return f"{timeout} at {ctx.now():%H:%M}"
    return "found"


@app.workflow
async def four_times(ctx: Context) -> str:
    try:
        await ctx.wait_until(Step("label", retries=20), find_label, every="5m", attempts=4)
    except WaitTimeout as timeout:
        return str(timeout)
    return "found"


def test_it_gives_the_first_true_value_and_pauses_between_checks(world: World) -> None:
    env = world(app)
    mock = env.mock(find_label).returns(None, None, None, Label("https://labels"))
    start = env.now
    assert env.start(ready, id="r").result() == "https://labels"
    assert len(mock.calls) == 4
    assert env.now - start == timedelta(minutes=15)
    assert env.repairs == 0


def test_no_check_runs_again_on_replay(world: World) -> None:
    env = world(app)
    mock = env.mock(find_label).runs(env.restart).runs(env.restart).returns(Label("u"))
    assert env.start(ready, id="r").result() == "u"
    assert len(mock.calls) == 3


def test_the_deadline_cuts_the_pause_and_has_a_last_check(world: World) -> None:
    env = world(app)
    mock = env.mock(find_label).returns(None)
    assert env.start(timing_out, id="r").result() == 'the wait at "label" reached its deadline at 00:12'
    assert len(mock.calls) == 4


def test_what_is_true_at_the_deadline_is_seen(world: World) -> None:
    env = world(app)
    env.mock(find_label).returns(*[None] * 12, Label("just in time"))
    assert env.start(ready, id="r").result() == "just in time"


def test_attempts_are_counted(world: World) -> None:
    env = world(app)
    start = env.now
    assert env.start(tried, id="r").result() == 'the wait at "label" reached its last attempt (4)'
    assert env.now - start == timedelta(minutes=1 + 2 + 4)


def test_a_failing_check_fails_it(world: World) -> None:
    env = world(app)
    mock = env.mock("label").raises(OSError("no network"))
    with pytest.raises(RunFailed, match="no network"):
        env.start(tried, id="r").result()
    assert len(mock.calls) == 3


def test_state_passes_from_check_to_check_and_old_rounds_are_not_executed_again(world: World) -> None:
    env = world(app)
    assert env.start(paging, id="r").result() == "page 45"
    history = env.history("r")
    assert [entry.value for entry in history if entry.key == "next_page"] == ['"page 45"']
    progress = [entry.key for entry in history if entry.mark.startswith("~")]
    assert set(progress) <= {"next_page~20", "next_page~40"}


def test_dying_anywhere_changes_nothing() -> None:
    TestEnvironment(app).run_crash_matrix(short_paging)
    TestEnvironment(app).run_crash_matrix(four_times)
