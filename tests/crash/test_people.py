"""Whatever call an invocation dies at: answers reach their callers, what is published is there, and reviews can be decided."""

from collections.abc import Callable
from typing import Any

from durable import App, Context, Signal, StateKey, Update, step_context
from durable.client import RunHandle
from durable.testing import TestEnvironment

RENAME = Update("rename", str, int)
GO = Signal("go", int)
PROGRESS = StateKey("progress", int)
app = App("crashes-of-people")


def talk() -> str:
    step_context().stream("log").append("from the step")
    return "talked"


@app.workflow
async def asked(ctx: Context) -> int:
    ctx.set_state(PROGRESS, 1)
    ctx.set_attributes(stage="begun")
    ctx.add_tags("begun")
    log = ctx.stream("log")
    log.append("begins")
    request = await ctx.updates.next(RENAME)
    ctx.set_state(PROGRESS, 2)
    await ctx.step(talk)
    log.append("talked")
    request.respond(len(request.arg))
    ctx.set_state(PROGRESS, 3)
    ctx.set_attributes(stage="answered")
    last = await ctx.wait_for_signal(GO)
    ctx.add_tags("gone")
    log.append(last)
    return last


@app.workflow
async def decided(ctx: Context) -> list[str]:
    first = await ctx.review("first", {"n": 1}, reviewers=["ann"])
    await ctx.breakpoint("between")
    second = await ctx.review("second", {"n": 2}, reviewers=["ann"], timeout="10 days")
    return [first.comment, second.comment]


def asks(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    handle.send_update(RENAME, "abc", id="update-1")
    env.advance(minutes=30)
    handle.send(GO, 7, id="go-1")


def decides(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    env.advance(minutes=30)
    env.decide_review(handle.id, "first", "approved", reviewer="ann", comment="one")
    env.advance(minutes=30)
    env.continue_breakpoint(handle.id, "between")
    env.advance(minutes=30)
    assert [review.name for review in env.reviews().reviews] == ["second"]
    env.decide_review(handle.id, "second", "rejected", reviewer="ann", comment="two")


def test_outcome_and_history_are_those_of_the_clean_run() -> None:
    env = TestEnvironment(app)
    assert len(env.run_crash_matrix(asked, script=asks).calls) >= 25
    assert len(env.run_crash_matrix(decided, script=decides).calls) >= 20


def test_what_the_run_has_shown_and_answered_is_there_after_every_crash() -> None:
    for_every_crash(asked, asks, check_asked)


def test_reviews_are_shown_and_decided_after_every_crash() -> None:
    for_every_crash(decided, decides, check_decided)


def check_asked(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    assert handle.result() == 7
    assert env.update_handle(handle.id, RENAME, "update-1").result(timeout=0) == 3
    assert handle.get_state(PROGRESS) == 3
    assert env.read_stream(handle.id, "log") == ["begins", "from the step", "talked", 7]
    assert env.get(handle.id).tags == ("begun", "gone")
    assert [row.id for row in env.list(asked, where="stage == 'answered'").runs] == [handle.id]


def check_decided(env: TestEnvironment, handle: RunHandle[Any]) -> None:
    assert handle.result() == ["one", "two"]
    assert not env.reviews().reviews


def for_every_crash(
    workflow: Any,
    script: Callable[[TestEnvironment, RunHandle[Any]], None],
    check: Callable[[TestEnvironment, RunHandle[Any]], None],
) -> None:
    """With an invocation that dies, stands still until its lease is over, or finds no store, at each of its calls."""
    clean = TestEnvironment(app)
    play(clean, workflow, script, check)
    for number in range(1, len(clean.calls) + 1):
        for plan in (crash_before, crash_after, stand_still):
            env = TestEnvironment(app)
            plan(env, number)
            play(env, workflow, script, check)
    for name in sorted(set(clean.calls)):
        for after in (False, True):
            env = TestEnvironment(app)
            env.faults.fail_next_call(name, after=after)
            play(env, workflow, script, check)


def play(
    env: TestEnvironment,
    workflow: Any,
    script: Callable[[TestEnvironment, RunHandle[Any]], None],
    check: Callable[[TestEnvironment, RunHandle[Any]], None],
) -> None:
    handle = env.start(workflow, id="r")
    script(env, handle)
    check(env, handle)


def crash_before(env: TestEnvironment, number: int) -> None:
    env.crash_at(number)


def crash_after(env: TestEnvironment, number: int) -> None:
    env.crash_at(number, after=True)


def stand_still(env: TestEnvironment, number: int) -> None:
    env.faults.freeze("5m", at=number)
