"""A run hands a token to an outside system and waits for what that reports with it, once."""

import asyncio
from hashlib import sha256
from typing import Any

import pytest
from pydantic import BaseModel

from durable import (
    App,
    Backoff,
    Branch,
    Break,
    CallbackFailed,
    Context,
    Continue,
    Failed,
    HeartbeatTimeout,
    InvalidInput,
    InvalidToken,
    Ok,
    RunEnded,
    RunFailed,
    RunNotFound,
    Signal,
    Step,
    StepFailed,
    TokenExpired,
    WaitTimeout,
    step_context,
)
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

GO = Signal("go", str)
app = App("callbacks")


class Receipt(BaseModel):
    number: str


TOKENS: dict[str, str] = {}


def submit(token: str) -> None:
    """The outside system, which keeps the tokens that it is given by the place that they are from."""
    TOKENS[step_context().location] = token


async def submit_async(token: str) -> object:
    await asyncio.sleep(0)
    submit(token)
    return object()


def token_of(env: TestEnvironment, location: str = "pay") -> str:
    env.run_until_idle()
    return TOKENS[f"{location}/submit"]


@pytest.fixture(autouse=True)
def _no_tokens() -> None:
    TOKENS.clear()


@app.workflow
async def pays(ctx: Context) -> str:
    receipt = await ctx.callback("pay", submit, Receipt, timeout="1 day")
    return receipt.number


def test_the_result_reaches_the_code_as_its_type(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        env.complete_callback(token_of(env), Receipt(number="r-1"))
        assert handle.result() == "r-1"
        assert env.get(handle.id).undelivered == 0


@app.workflow
async def pays_asynchronously(ctx: Context) -> str:
    return (await ctx.callback("pay", submit_async, Receipt, timeout="1 day")).number


def test_the_submission_may_be_async_and_return_anything(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays_asynchronously)
        env.complete_callback(token_of(env), {"number": "r-1"})
        assert handle.result() == "r-1"


@app.workflow
async def answered_at_once(ctx: Context) -> str:
    def answer(token: str) -> None:
        CLIENT[0].complete_callback(token, {"number": "early"})

    return (await ctx.callback("pay", answer, Receipt, timeout="1 day")).number


CLIENT: list[TestEnvironment] = []


def test_an_answer_before_the_wait_counts(world: World) -> None:
    with world(app) as env:
        CLIENT[:] = [env]
        assert env.start(answered_at_once).result() == "early"


def test_the_first_of_two_answers_counts(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        token = token_of(env)
        env.complete_callback(token, {"number": "first"})
        env.complete_callback(token, {"number": "second"})
        env.fail_callback(token, "too late")
        assert handle.result() == "first"


@app.workflow
async def goes_on(ctx: Context) -> str:
    receipt = await ctx.callback("pay", submit, Receipt, timeout="1 day")
    await ctx.wait_for_signal(GO)
    return receipt.number


def test_a_second_answer_after_the_first_was_taken_changes_nothing(world: World) -> None:
    with world(app) as env:
        handle = env.start(goes_on)
        token = token_of(env)
        env.complete_callback(token, {"number": "first"})
        env.run_until_idle()
        env.complete_callback(token, {"number": "second"})
        env.run_until_idle()
        handle.send(GO, "")
        assert handle.result() == "first"
        assert env.get(handle.id).undelivered == 0


@app.workflow
async def tells_of_failure(ctx: Context) -> list[Any]:
    try:
        await ctx.callback("pay", submit, Receipt, timeout="1 day")
    except CallbackFailed as failure:
        return [failure.name, failure.error.type, failure.error.message, failure.error.data, failure.retryable]
    return []


def test_a_failure_is_raised_as_it_was_told(world: World) -> None:
    with world(app) as env:
        handle = env.start(tells_of_failure)
        told = {"type": "CardDeclined", "message": "no funds", "data": {"code": 51}}
        env.fail_callback(token_of(env), told, retryable=True)
        assert handle.result() == ["pay", "CardDeclined", "no funds", {"code": 51}, True]


def test_a_result_that_does_not_fit_is_a_failure(world: World) -> None:
    with world(app) as env:
        handle = env.start(tells_of_failure)
        env.complete_callback(token_of(env), {"nummer": "r-1"})
        name, kind, message, _, retryable = handle.result()
        assert (name, kind, retryable) == ("pay", "InvalidInput", False)
        assert "Receipt" in message


@app.workflow
async def tries(ctx: Context) -> str:
    async def body(ctx: Context) -> str:
        return (await ctx.callback("pay", submit, Receipt, timeout="1 day")).number

    match await ctx.try_block("try", body):
        case Ok(value=value):
            return value
        case Failed(source=source, kind=kind):
            return f"{source} {kind}"


def test_a_try_block_takes_the_failure(world: World) -> None:
    with world(app) as env:
        handle = env.start(tries)
        env.fail_callback(token_of(env, "try/pay"), "no")
        assert handle.result() == "callback critical"


@app.workflow
async def asks_again(ctx: Context) -> str:
    async def body(ctx: Context) -> str:
        return (await ctx.callback("pay", submit, Receipt, timeout="1 day")).number

    return await ctx.retrying("again", body, retries=2)


def test_a_failure_that_may_be_retried_is_asked_again_with_another_token(world: World) -> None:
    with world(app) as env:
        handle = env.start(asks_again)
        first = token_of(env, "again[0]/pay")
        env.fail_callback(first, "busy", retryable=True)
        env.advance(minutes=1)
        second = token_of(env, "again[1]/pay")
        assert first != second
        env.complete_callback(first, {"number": "of the first"})
        env.complete_callback(second, {"number": "of the second"})
        assert handle.result() == "of the second"


def test_a_final_failure_is_not_asked_again(world: World) -> None:
    with world(app) as env:
        handle = env.start(asks_again)
        env.fail_callback(token_of(env, "again[0]/pay"), "closed")
        with pytest.raises(RunFailed, match="closed"):
            handle.result()


def unreachable(token: str) -> None:
    raise ConnectionError(f"no answer for {len(token) > 0}")


@app.workflow
async def cannot_submit(ctx: Context) -> str:
    try:
        await ctx.callback("pay", unreachable, Receipt, timeout="1 day", step=Step(retries=1))
    except StepFailed as failure:
        return f"{failure.name} {failure.attempts}"
    return "submitted"


def test_a_submission_that_fails_is_a_failed_step(world: World) -> None:
    with world(app) as env:
        assert env.start(cannot_submit).result() == "submit 2"


@app.workflow
async def submits_late(ctx: Context) -> str:
    policy = Step(retries=2, backoff=Backoff(base="10m", max="10m"))
    receipt = await ctx.callback("pay", submit_at_last, Receipt, timeout="15m", step=policy)
    return receipt.number


ATTEMPTS: list[str] = []


def submit_at_last(token: str) -> None:
    ATTEMPTS.append(token)
    if len(ATTEMPTS) < 3:
        raise ConnectionError
    submit(token)


def test_the_time_begins_when_the_submission_has_succeeded(world: World) -> None:
    ATTEMPTS.clear()
    with world(app) as env:
        handle = env.start(submits_late)
        env.advance(minutes=30)
        assert env.get(handle.id).status == "suspended"
        env.complete_callback(ATTEMPTS[0], {"number": "by the first token"})
        env.complete_callback(ATTEMPTS[2], {"number": "by the third"})
        assert handle.result() == "by the first token"


@app.workflow
async def is_cancelled_while_it_submits(ctx: Context) -> str:
    policy = Step(retries=2, backoff=Backoff(base="10m", max="10m"))
    try:
        async with asyncio.timeout(60):
            await ctx.callback("pay", unreachable, Receipt, timeout="15m", step=policy)
    except TimeoutError:
        return await ctx.step(str, "given up")
    return "submitted"


def test_a_submission_is_given_up_like_any_step(world: World) -> None:
    with world(app) as env:
        assert env.start(is_cancelled_while_it_submits).result() == "given up"


@app.workflow
async def large(ctx: Context) -> int:
    return len(await ctx.callback("pay", submit, list[str], timeout="1 day"))


def test_a_large_result_is_taken(world: World) -> None:
    with world(app) as env:
        handle = env.start(large)
        texts = [sha256(str(n).encode()).hexdigest()[:12] for n in range(16_000)]
        token = token_of(env)
        env.complete_callback(token, texts)
        env.run_until_idle()
        env.restart()
        assert handle.result() == 16_000


@app.workflow
async def awaits_twice(ctx: Context) -> str:
    asked = ctx.callback("pay", submit, Receipt, timeout="1 day")
    first, second = await asyncio.gather(_again(asked), _again(asked), return_exceptions=True)
    return f"{first} {second}"


async def _again(asked: Any) -> str:
    return (await asked).number


def test_a_callback_is_awaited_once(world: World) -> None:
    with world(app) as env:
        handle = env.start(awaits_twice)
        env.complete_callback(token_of(env), {"number": "r-1"})
        assert "r-1" in handle.result()
        assert "awaited twice" in handle.result()


# Time


@app.workflow
async def times_out(ctx: Context) -> str:
    try:
        return (await ctx.callback("pay", submit, Receipt, timeout="1h")).number
    except WaitTimeout:
        await ctx.wait_for_signal(GO)
        return "timeout"


def test_an_answer_after_the_timeout_changes_nothing(world: World) -> None:
    with world(app) as env:
        handle = env.start(times_out)
        token = token_of(env)
        env.advance(hours=2)
        env.complete_callback(token, {"number": "late"})
        handle.send(GO, "")
        assert handle.result() == "timeout"
        assert env.get(handle.id).undelivered == 0


def test_a_token_expires_a_day_after_its_time(world: World) -> None:
    with world(app) as env:
        env.start(times_out)
        token = token_of(env)
        env.advance(hours=26)
        with pytest.raises(TokenExpired):
            env.complete_callback(token, {"number": "much too late"})


@app.workflow
async def watched(ctx: Context) -> str:
    try:
        return (await ctx.callback("pay", submit, Receipt, timeout="1h", heartbeat="10m")).number
    except HeartbeatTimeout:
        return f"silent since {ctx.now():%H:%M}"
    except WaitTimeout:
        return f"timeout {ctx.now():%H:%M}"


def test_silence_ends_the_wait_early(world: World) -> None:
    with world(app) as env:
        began = env.now
        handle = env.start(watched)
        handle.result()
        assert (env.now - began).total_seconds() == pytest.approx(600, abs=2)
        assert handle.result().startswith("silent")


def test_signs_of_life_put_the_end_off_until_the_timeout(world: World) -> None:
    with world(app) as env:
        began = env.now
        handle = env.start(watched)
        token = token_of(env)
        for done in range(7):
            env.advance(minutes=8)
            env.heartbeat_callback(token, {"done": done})
        handle.result()
        assert (env.now - began).total_seconds() == pytest.approx(3600, abs=2)
        assert handle.result().startswith("timeout")


def test_a_result_after_signs_of_life_is_taken(world: World) -> None:
    with world(app) as env:
        handle = env.start(watched)
        token = token_of(env)
        for _ in range(3):
            env.advance(minutes=9)
            env.heartbeat_callback(token)
        env.restart()
        env.advance(minutes=9)
        env.complete_callback(token, {"number": "r-1"})
        assert handle.result() == "r-1"


@app.workflow
async def many_watched(ctx: Context) -> list[str]:
    async def one(n: int) -> str:
        try:
            return (await ctx.callback(f"pay-{n}", submit, Receipt, timeout="1h", heartbeat="10m")).number
        except HeartbeatTimeout:
            return "silent"

    return list(await asyncio.gather(*(one(n) for n in range(10))))


def test_heartbeats_are_told_apart_among_many(world: World) -> None:
    with world(app) as env:
        handle = env.start(many_watched)
        env.run_until_idle()
        for _ in range(3):
            env.advance(minutes=9)
            for n in range(0, 10, 2):
                env.heartbeat_callback(TOKENS[f"pay-{n}/submit"])
        for n in range(0, 10, 2):
            env.complete_callback(TOKENS[f"pay-{n}/submit"], {"number": str(n)})
        assert handle.result() == ["0", "silent", "2", "silent", "4", "silent", "6", "silent", "8", "silent"]


# Who may answer


def test_a_token_that_was_changed_is_refused(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        token = token_of(env)
        payload, _, signature = token.partition(".")
        other = "A" if payload[20] != "A" else "B"
        for forged in ("", "x", f"{payload}.", f"{payload[:20]}{other}{payload[21:]}.{signature}", token + "A"):
            with pytest.raises(InvalidToken):
                env.complete_callback(forged, {"number": "r-1"})
        with pytest.raises(InvalidToken):
            env.call_webhook(token, {"number": "r-1"})
        env.run_until_idle()
        assert env.get(handle.id).status == "suspended"


@app.workflow
async def pays_twice(ctx: Context) -> list[str]:
    first, second = await asyncio.gather(
        ctx.callback("pay", submit, Receipt, timeout="1 day"), ctx.callback("pay", submit, Receipt, timeout="1 day")
    )
    return [first.number, second.number]


def test_two_callbacks_of_a_name_have_two_tokens(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays_twice)
        first, second = token_of(env), token_of(env, "pay#2")
        env.complete_callback(second, {"number": "second"})
        env.complete_callback(first, {"number": "first"})
        assert handle.result() == ["first", "second"]


@app.workflow
async def pays_monthly(ctx: Context) -> list[str]:
    async def month(ctx: Context, paid: list[str]) -> Continue[list[str]] | Break[list[str]]:
        receipt = await ctx.callback("pay", submit, Receipt, timeout="1 day")
        paid = [*paid, receipt.number]
        return Break(paid) if len(paid) == 3 else Continue(paid)

    return await ctx.loop("months", month, state=[], history=1)


def test_each_iteration_has_a_token_of_its_own(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays_monthly)
        for n in range(3):
            token = token_of(env, f"months[{n}]/pay")
            env.complete_callback(token, {"number": str(n)})
            env.run_until_idle()
            if n < 2:
                env.complete_callback(token, {"number": "again"})
        assert handle.result() == ["0", "1", "2"]


def test_nobody_answers_a_run_that_has_ended(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        token = token_of(env)
        env.complete_callback(token, {"number": "r-1"})
        handle.result()
        with pytest.raises(RunEnded):
            env.complete_callback(token, {"number": "r-1"})
        with pytest.raises(RunEnded):
            env.heartbeat_callback(token)


def test_a_token_is_not_good_for_another_run_of_its_id(world: World) -> None:
    with world(app) as env:
        env.start(pays, id="again").cancel("terminate")
        env.start(pays, id="first")
        token = token_of(env)
        env.cancel("first", "terminate")
        env.run_until_idle()
        env.ports.store.delete_run("first")
        with pytest.raises(RunNotFound):
            env.complete_callback(token, {"number": "r-1"})
        env.advance(seconds=1)
        handle = env.start(pays, id="first")
        env.run_until_idle()
        with pytest.raises(RunNotFound):
            env.complete_callback(token, {"number": "r-1"})
        env.complete_callback(token_of(env), {"number": "r-2"})
        assert handle.result() == "r-2"


def test_an_error_without_a_message_is_refused(world: World) -> None:
    with world(app) as env:
        env.start(pays)
        token = token_of(env)
        wrong: list[Any] = [{}, {"message": 3}, {"message": "x", "code": 1}, {"message": "x", "type": ""}, 7]
        for error in wrong:
            with pytest.raises(InvalidInput):
                env.fail_callback(token, error)


# Races, cancellation, retries


@app.workflow
async def races(ctx: Context) -> str:
    async def by_callback(ctx: Context) -> str:
        return (await ctx.callback("pay", submit, Receipt, timeout="1 day")).number

    async def by_time(ctx: Context) -> str:
        await ctx.sleep("1h")
        return "time"

    winner = await ctx.race("first", Branch("callback", by_callback), Branch("time", by_time))
    await ctx.wait_for_signal(GO)
    return winner.value


def test_an_answer_to_the_loser_of_a_race_changes_nothing(world: World) -> None:
    with world(app) as env:
        handle = env.start(races)
        token = token_of(env, "first/callback/pay")
        env.advance(hours=2)
        env.complete_callback(token, {"number": "late"})
        env.run_until_idle()
        handle.send(GO, "")
        assert handle.result() == "time"
        assert env.get(handle.id).undelivered == 0


def test_a_callback_wins_a_race(world: World) -> None:
    with world(app) as env:
        handle = env.start(races)
        env.complete_callback(token_of(env, "first/callback/pay"), {"number": "r-1"})
        handle.send(GO, "")
        assert handle.result() == "r-1"


@app.workflow
async def cleans_up(ctx: Context) -> str:
    try:
        return (await ctx.callback("pay", submit, Receipt, timeout="1 day")).number
    except asyncio.CancelledError:
        await ctx.step("withdraw", str, "withdrawn")
        raise


def test_a_cancelled_run_withdraws_its_submission(world: World) -> None:
    with world(app) as env:
        handle = env.start(cleans_up)
        token = token_of(env)
        handle.cancel()
        env.run_until_idle()
        assert env.get(handle.id).status == "cancelled"
        assert "withdraw" in [entry.location for entry in env.history(handle.id)]
        with pytest.raises(RunEnded):
            env.complete_callback(token, {"number": "r-1"})


def test_a_retry_of_the_run_submits_again_with_another_token(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        first = token_of(env)
        env.fail_callback(first, "closed for today")
        with pytest.raises(RunFailed):
            handle.result()
        env.retry(handle.id)
        second = token_of(env)
        assert first != second
        env.complete_callback(first, {"number": "of yesterday"})
        env.run_until_idle()
        env.restart()
        env.complete_callback(second, {"number": "of today"})
        assert handle.result() == "of today"


def test_a_retry_after_a_timeout_has_its_whole_time(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        env.advance(days=2)
        with pytest.raises(RunFailed):
            handle.result()
        env.advance(days=2)
        env.retry(handle.id)
        token = token_of(env)
        env.advance(hours=23)
        env.complete_callback(token, {"number": "r-1"})
        assert handle.result() == "r-1"
