"""What asyncio offers works in workflows as it does elsewhere, is durable, and costs nothing while it waits."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from durable import App, Context, NonRetryableError, RunFailed, Signal, Step, StepFailed
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World
from tests.scenarios.replaying import played_cold

GO = Signal("go", str)
SURE = Step(retries=20)
app = App("asyncio")


def work(n: int) -> int:
    return n * n


def refuse(n: int) -> int:
    raise NonRetryableError(f"not {n}")


async def napping(ctx: Context, n: int) -> int:
    await asyncio.sleep(60 * n)
    return await ctx.step(SURE, work, n)


@app.workflow
async def gathered(ctx: Context) -> list[Any]:
    results = await asyncio.gather(
        napping(ctx, 2), napping(ctx, 1), ctx.step("refused", refuse, 1), return_exceptions=True
    )
    return [str(result) if isinstance(result, Exception) else result for result in results]


@app.workflow
async def grouped(ctx: Context) -> list[int]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(napping(ctx, n)) for n in (3, 1, 2)]
    return [task.result() for task in tasks]


@app.workflow
async def failing_group(ctx: Context) -> list[str]:
    seen: list[str] = []

    async def careful(n: int) -> None:
        try:
            await napping(ctx, n)
        except asyncio.CancelledError:
            seen.append(f"cancelled {n}")
            await ctx.step(f"clean-{n}", work, n)
            raise

    try:
        async with asyncio.TaskGroup() as group:
            for n in (8, 9):
                group.create_task(careful(n))
            await asyncio.sleep(60)
            await ctx.step(SURE, refuse, 1)
    except* StepFailed as failures:
        seen.append(str(len(failures.exceptions)))
    await ctx.sleep("1h")
    return seen


@app.workflow
async def timing_out(ctx: Context) -> list[str]:
    seen: list[str] = []
    try:
        async with asyncio.timeout(120):
            await ctx.mailbox.next(GO)
    except TimeoutError:
        seen.append("timeout")
    try:
        await asyncio.wait_for(napping(ctx, 10), 60)
    except TimeoutError:
        seen.append("wait_for")
    seen.append(str(await asyncio.wait_for(napping(ctx, 1), 600)))
    return seen


@app.workflow
async def first_come(ctx: Context) -> list[int]:
    tasks = [asyncio.create_task(napping(ctx, n)) for n in (3, 1, 2)]
    return [await task for task in asyncio.as_completed(tasks)]


@app.workflow
async def waited(ctx: Context) -> list[int]:
    tasks = [asyncio.create_task(napping(ctx, n), name=str(n)) for n in (3, 1, 2)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.wait(pending)
    return [len(done), len(pending), *(task.result() for task in done)]


async def ticks(ctx: Context, count: int) -> AsyncGenerator[int]:
    try:
        for n in range(count):
            await ctx.sleep("1m")
            yield await ctx.step(SURE, work, n)
    finally:
        await ctx.step("closed", work, 0)


@contextlib.asynccontextmanager
async def rented(ctx: Context, name: str) -> AsyncIterator[int]:
    yield await ctx.step(f"rent-{name}", work, len(name))
    await ctx.step(f"return-{name}", work, len(name))


@app.workflow
async def generators(ctx: Context) -> list[int]:
    seen: list[int] = []
    async with contextlib.aclosing(ticks(ctx, 9)) as numbers:
        async for number in numbers:
            seen.append(number)
            if len(seen) == 3:
                break
    async with rented(ctx, "car") as car:
        await ctx.sleep("1h")
        seen.append(car)
    return seen


@app.workflow
async def coordinated(ctx: Context) -> list[str]:
    ready, lock, queue = asyncio.Event(), asyncio.Lock(), asyncio.Queue[int]()
    seen: list[str] = []

    async def producer() -> None:
        for n in range(3):
            await ctx.sleep("1m")
            await queue.put(await ctx.step(SURE, work, n))
        ready.set()

    async def consumer() -> None:
        for _ in range(3):
            number = await queue.get()
            async with lock:
                await ctx.sleep("20s")
                seen.append(f"got {number}")

    async def watcher() -> None:
        await ready.wait()
        async with lock:
            seen.append("ready")

    await asyncio.gather(producer(), consumer(), watcher())
    return seen


@app.workflow
async def catches_everything(ctx: Context) -> list[str]:
    seen: list[str] = []
    for n in range(3):
        try:
            await ctx.sleep("1m")
            await ctx.step(f"try-{n}", refuse, n)
        except Exception as error:  # noqa: BLE001 - that suspending is no Exception is the point
            seen.append(type(error).__name__)
    try:
        await ctx.sleep("1m")
    except:
        seen.append("never")
        raise
    finally:
        seen.append("finally")
    return seen


@app.workflow
async def shielded(ctx: Context) -> list[int]:
    inner = asyncio.create_task(napping(ctx, 5))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(60):
            await asyncio.shield(inner)
    return [await inner]


@app.workflow
async def unhandled(ctx: Context) -> None:
    await asyncio.gather(napping(ctx, 5), ctx.step("refused", refuse, 1))


EXPECTED: list[tuple[Any, Any]] = [
    (gathered, [4, 1, 'step "refused" failed after 1 attempt: NonRetryableError: not 1']),
    (grouped, [9, 1, 4]),
    (failing_group, ["cancelled 8", "cancelled 9", "1"]),
    (timing_out, ["timeout", "wait_for", "1"]),
    (first_come, [1, 4, 9]),
    (waited, [1, 2, 1]),
    (generators, [0, 1, 4, 9]),
    (coordinated, ["got 0", "got 1", "got 4", "ready"]),
    (catches_everything, ["NonRetryableError"] * 3 + ["finally"]),
    (shielded, [25]),
]
NAMES = [workflow.name for workflow, _ in EXPECTED]


@pytest.mark.parametrize(("workflow", "expected"), EXPECTED, ids=NAMES)
def test_it_does_what_asyncio_does(world: World, workflow: Any, expected: Any) -> None:
    env = world(app)
    assert sorted(map(str, env.start(workflow, id="r").result())) == sorted(map(str, expected))
    assert env.repairs == 0


@pytest.mark.parametrize(("workflow", "expected"), EXPECTED, ids=NAMES)
def test_it_does_the_same_when_every_turn_is_cold_and_from_every_prefix(workflow: Any, expected: Any) -> None:
    assert played_cold(workflow, app) == expected


@pytest.mark.parametrize("workflow", [grouped, timing_out, generators, coordinated, shielded], ids=lambda one: one.name)
def test_dying_anywhere_changes_nothing(workflow: Any) -> None:
    TestEnvironment(app).run_crash_matrix(workflow)


def test_a_timer_is_durable_and_costs_no_turn_until_it_fires(world: World) -> None:
    env = world(app)
    start = env.now
    env.start(grouped, id="r")
    env.run_until_idle()
    calls = len(env.calls)
    env.advance(seconds=59)
    assert len(env.calls) == calls
    env.result("r")
    assert env.now - start == timedelta(minutes=3)


def test_an_error_that_nobody_handles_fails_the_run_at_once(world: World) -> None:
    env = world(app)
    start = env.now
    with pytest.raises(RunFailed, match="not 1"):
        env.start(unhandled, id="r").result()
    assert env.now == start


def test_code_that_swallows_everything_ends_all_the_same() -> None:
    """Also when the interpreter ends: a coroutine that is closed then would run on for ever."""
    program = """
from durable import App, Context
from durable.testing import TestEnvironment
app = App("greedy")
@app.workflow
async def greedy(ctx: Context) -> str:
    while True:
        try:
            await ctx.sleep("20s")
            return "rested"
        except:
            pass
with TestEnvironment(app) as env:
    print(env.start(greedy, id="r").result())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "rested\n"
