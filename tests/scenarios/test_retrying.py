"""A block is run again as a whole until it succeeds; rounds that failed are history and are not executed again."""

from typing import Any

import pytest

from durable import (
    App,
    Backoff,
    Context,
    NonRetryableError,
    RollbackError,
    RunBlocked,
    RunFailed,
    Signal,
    Step,
)  # fmt: skip
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

ANSWER = Signal("answer", str)
SURE = Step(retries=20)
ONCE = Step("answers", retries=0)
app = App("retried-blocks")
executed: list[int] = []


class NotYet(Exception):
    pass


def ask(n: int) -> int:
    return n


def answers() -> str:
    return "yes"


def refuse() -> str:
    raise NonRetryableError("never")


def undo_all() -> str:
    raise RollbackError("undo")


async def conversation(ctx: Context) -> str:
    executed.append(1)
    await ctx.step(SURE, ask, 7)
    await ctx.sleep("10m")
    return await ctx.step(ONCE, answers)


async def picky(ctx: Context) -> str:
    message = await ctx.mailbox.next(ANSWER)
    got = await ctx.step(SURE, ask, len(message.body))
    if got < 3:
        raise NotYet(message.body)
    await ctx.sleep("10m")
    return message.body


async def refused(ctx: Context) -> str:
    return await ctx.step(refuse)


async def undone(ctx: Context) -> str:
    return await ctx.step(undo_all)


async def gives_up(ctx: Context) -> str:
    raise NonRetryableError("said by the code")


@app.workflow
async def patient(ctx: Context) -> str:
    return await ctx.retrying("talk", conversation, retries=3, backoff=Backoff("1h", factor=2, max="1 day"))


@app.workflow
async def listening(ctx: Context) -> list[Any]:
    answer = await ctx.retrying("talk", picky, retries=5, backoff=Backoff("1h", max="1h"))
    return [answer, await ctx.step("after", ask, 1)]


@app.workflow
async def hopeless(ctx: Context, which: str) -> str:
    return await ctx.retrying("talk", {"refused": refused, "undone": undone, "code": gives_up}[which], retries=9)


def locations(env: TestEnvironment) -> list[str]:
    return [entry.key for entry in env.history("r")]


def test_every_round_has_its_own_scope_and_the_pauses_grow(world: World) -> None:
    env = world(app)
    env.mock(answers).raises(NotYet("1")).raises(NotYet("2")).returns("yes")
    start = env.now
    assert env.start(patient, id="r").result() == "yes"
    assert round((env.now - start).total_seconds()) == 3 * 600 + 3600 + 7200
    assert env.repairs == 0
    assert [key for key in locations(env) if not key.startswith("talk[0]")] == [
        "talk~1", "talk[1]/sleep#0", "talk[1]/ask", "talk[1]/sleep", "talk[1]/answers",
        "talk~2", "talk[2]/sleep#0", "talk[2]/ask", "talk[2]/sleep", "talk[2]/answers",
    ] or locations(env)[-5:] == ["talk~2", "talk[2]/sleep#0", "talk[2]/ask", "talk[2]/sleep", "talk[2]/answers"]  # fmt: skip


def test_a_round_that_failed_is_not_executed_again(world: World) -> None:
    env = world(app)
    env.mock(answers).raises(NotYet("1")).returns("yes")
    handle = env.start(patient, id="r")
    env.advance(minutes=30)
    executed.clear()
    env.restart()
    assert handle.result() == "yes"
    env.restart()
    assert len(executed) == 2  # the second round, and again after its sleep


def test_the_last_error_is_raised_when_the_rounds_are_used_up(world: World) -> None:
    env = world(app)
    mock = (
        env.mock(answers).raises(NotYet("early")).raises(NotYet("early")).raises(NotYet("early")).raises(NotYet("last"))
    )
    with pytest.raises(RunFailed, match="last"):
        env.start(patient, id="r").result()
    assert len(mock.calls) == 4


@pytest.mark.parametrize(("which", "says"), [("refused", "never"), ("undone", "undo"), ("code", "said by the code")])
def test_what_no_repetition_can_mend_ends_it_at_once(world: World, which: str, says: str) -> None:
    env = world(app)
    with pytest.raises(RunFailed, match=says):
        env.start(hopeless, which, id="r").result()
    assert not any("~" in key for key in locations(env))


def test_a_round_that_failed_keeps_the_message_that_it_consumed(world: World) -> None:
    env = world(app)
    handle = env.start(listening, id="r")
    for text in ("no", "certainly"):
        handle.send(ANSWER, text)
    assert handle.result() == ["certainly", 1]


def test_new_code_may_run_in_a_round_that_has_not_begun(world: World) -> None:
    def deployment(body: Any) -> App[None]:
        changing = App("changing")

        @changing.workflow
        async def job(ctx: Context) -> str:
            return await ctx.retrying("talk", body, retries=2, backoff=Backoff("1h", max="1h"))

        return changing

    async def mended(ctx: Context) -> str:
        return await ctx.step("other", answers)

    env = world(deployment(refused_softly))
    handle = env.start(env.app.newest("job"), id="r")
    env.advance(minutes=30)
    env.deploy(deployment(mended))
    assert handle.result() == "yes"


async def refused_softly(ctx: Context) -> str:
    await ctx.step(SURE, ask, 1)
    raise NotYet("the old code")


def test_another_name_is_a_divergence(world: World) -> None:
    def deployment(name: str) -> App[None]:
        changing = App("changing")

        @changing.workflow
        async def job(ctx: Context) -> str:
            return await ctx.retrying(name, conversation)

        return changing

    env = world(deployment("talk"))
    handle = env.start(env.app.newest("job"), id="r")
    env.run_until_idle()
    mock = env.mock(ask).returns(1)
    env.deploy(deployment("chat"))
    with pytest.raises(RunBlocked, match="talk"):
        handle.result()
    assert not mock.calls
    env.deploy(deployment("talk"))
    assert handle.result() == "yes"


def two_answers(env: TestEnvironment, handle: Any) -> None:
    handle.send(ANSWER, "no", id="m1")
    env.advance(hours=3)
    handle.send(ANSWER, "certainly", id="m2")


def test_dying_anywhere_changes_nothing() -> None:
    TestEnvironment(app).run_crash_matrix(listening, script=two_answers)
