"""A remote step is performed by a worker, once if all goes well, and its run sleeps meanwhile."""

import asyncio
from typing import cast

import pytest
from pydantic import BaseModel

from durable import (
    App,
    Backoff,
    Call,
    Context,
    Failed,
    NonRetryableError,
    Ok,
    RetryAfter,
    RunFailed,
    StepFailed,
    step_context,
)
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("remote-steps")
elsewhere = App("elsewhere")
KEYS: list[tuple[int, str]] = []
FAILURES: list[Exception] = []


class Parcel(BaseModel):
    id: str
    grams: int = 100


class Label(BaseModel):
    text: str
    copies: int = 1


class Jammed(Exception):
    def __init__(self, *, tray: int) -> None:
        super().__init__(f"tray {tray}")
        self.tray = tray


@app.remote_step(queue="labels", timeout="5m")
def print_label(parcel: Parcel, *, copies: int = 1) -> Label:
    return Label(text=f"{parcel.id} ({parcel.grams} g)", copies=copies)


@app.remote_step
async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


@app.remote_step(retries=2)
def flaky(code: str) -> str:
    KEYS.append((step_context().attempt, step_context().idempotency_key))
    if FAILURES:
        raise FAILURES.pop(0)
    return code


@elsewhere.remote_step
def foreign() -> None: ...


@app.workflow
async def ship(ctx: Context, parcel: Parcel) -> Label:
    return await ctx.call(print_label, parcel, copies=2)


@app.workflow
async def ship_named(ctx: Context, parcel: Parcel) -> list[str]:
    first = await ctx.call("first", print_label, parcel)
    second = await ctx.call(Call("second", queue="other"), print_label, parcel)
    return [first.text, second.text]


@app.workflow
async def many(ctx: Context, count: int) -> int:
    async def one(ctx: Context, number: int) -> int:
        return await ctx.call(double, number)

    return sum(await ctx.map("all", list(range(count)), one, concurrency=count))


@app.workflow
async def patient(ctx: Context, code: str) -> str:
    return await ctx.call(Call(backoff=Backoff("1m", max="10m")), flaky, code)


@app.workflow
async def catches(ctx: Context, code: str) -> str:
    try:
        return await ctx.call(flaky, code)
    except Jammed as error:
        failed = cast("StepFailed", error)
        found = f"{failed.name} {failed.attempts} {failed.kind} {error.tray}"
    await ctx.sleep("1h")
    return found


@app.workflow
async def tries_block(ctx: Context, code: str) -> str:
    async def body(ctx: Context) -> str:
        return await ctx.call(flaky, code)

    match await ctx.try_block("print", body):
        case Ok(value):
            return value
        case Failed(source=source, name=name, attempts=attempts):
            return f"{source} {name} {attempts}"


@app.workflow
async def large(ctx: Context, size: int) -> str:
    return await ctx.call(flaky, "x" * size)


@app.workflow
async def calls_what_is_not_registered(ctx: Context) -> None:
    await ctx.call(foreign)


def locations(env: TestEnvironment, run_id: str) -> list[str]:
    return [f"{entry.location}{entry.mark}" for entry in env.history(run_id)]


def test_a_remote_step_gives_its_result(world: World) -> None:
    with world(app) as env:
        handle = env.start(ship, Parcel(id="p-1"), id="r-1")
        assert handle.result() == Label(text="p-1 (100 g)", copies=2)
        opened, result = env.history("r-1")
        assert (opened.key, result.key, result.kind) == ("print_label?1", "print_label", "call")
        assert result.attempts == 1
        assert env.get("r-1").late_results == 0


def test_a_call_has_a_name_and_another_queue(world: World) -> None:
    with world(app) as env:
        assert env.start(ship_named, Parcel(id="p-1"), id="r-1").result() == ["p-1 (100 g)", "p-1 (100 g)"]
        assert locations(env, "r-1") == ["first?1", "first", "second?1", "second"]


def test_calls_of_a_map_are_dispatched_together(world: World) -> None:
    with world(app) as env:
        assert env.start(many, 20).result() == 380


def test_a_failed_attempt_is_made_again_after_its_pause(world: World) -> None:
    KEYS.clear()
    FAILURES[:] = [Jammed(tray=1), Jammed(tray=2)]
    with world(app) as env:
        began = env.now
        assert env.start(patient, "done", id="r-1").result() == "done"
        assert (env.now - began).total_seconds() == pytest.approx(180, abs=3)
        assert locations(env, "r-1") == ["flaky?1", "flaky@1", "flaky?2", "flaky@2", "flaky?3", "flaky"]
        assert [attempt for attempt, _ in KEYS] == [1, 2, 3]
        assert len({key for _, key in KEYS}) == 1


def test_a_worker_says_when_to_try_again(world: World) -> None:
    FAILURES[:] = [RetryAfter("10m")]
    with world(app) as env:
        began = env.now
        assert env.start(catches, "done").result() == "done"
        assert (env.now - began).total_seconds() == pytest.approx(600, abs=3)


def test_an_error_is_caught_by_its_class_live_and_on_replay(world: World) -> None:
    FAILURES[:] = [Jammed(tray=n) for n in range(1, 4)]
    with world(app) as env:
        assert env.start(catches, "c").result() == "flaky 3 exhausted 3"


def test_an_error_that_is_not_retried_ends_the_call(world: World) -> None:
    FAILURES[:] = [NonRetryableError("no paper at all")]
    with world(app) as env, pytest.raises(RunFailed, match="no paper at all"):
        env.start(patient, "c").result()


def test_a_try_block_takes_the_failure_of_a_remote_step(world: World) -> None:
    FAILURES[:] = [Jammed(tray=n) for n in range(1, 4)]
    with world(app) as env:
        assert env.start(tries_block, "c").result() == "step flaky 3"


def test_arguments_that_are_no_message_are_sent_by_reference(world: World) -> None:
    with world(app) as env:
        assert env.start(large, 1_500_000, id="r-1").result() == "x" * 1_500_000


def test_a_remote_step_of_another_app_is_refused(world: World) -> None:
    with world(app) as env, pytest.raises(RunFailed, match='"foreign" is not registered in app "remote-steps"'):
        env.start(calls_what_is_not_registered).result()


def test_an_operator_s_retry_dispatches_it_anew(world: World) -> None:
    FAILURES[:] = [NonRetryableError("no paper at all")]
    with world(app) as env:
        handle = env.start(patient, "c", id="r-1")
        with pytest.raises(RunFailed):
            handle.result()
        env.retry("r-1")
        assert handle.result() == "c"
        assert locations(env, "r-1") == ["flaky?1", "flaky"]
