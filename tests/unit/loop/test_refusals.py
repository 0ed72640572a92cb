"""What workflow code must not do is refused, and the refusal cannot be swallowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from durable.errors import (
    BusyLoop,
    Deadlock,
    DuplicateName,
    Misuse,
    NotAllowedInWorkflow,
    OperationInsideStep,
    UnawaitedOperation,
)
from tests.properties.replays import play
from tests.properties.virtual_engine import Ctx, Workflow, open_run


def plus_one(x: int) -> int:
    return x + 1


async def subprocess() -> Any:
    await asyncio.create_subprocess_exec("ls")


REFUSED: dict[str, Callable[[asyncio.AbstractEventLoop], Any]] = {
    "executor": lambda loop: loop.run_in_executor(None, plus_one, 1),
    "to_thread": lambda _: asyncio.to_thread(plus_one, 1),
    "connection": lambda _: asyncio.open_connection("localhost", 80),
    "socket": lambda loop: loop.sock_connect(None, None),  # type: ignore[arg-type]
    "subprocess": lambda _: subprocess(),
    "threadsafe": lambda loop: loop.call_soon_threadsafe(print),
    "signal": lambda loop: loop.add_signal_handler(1, print),
    "task factory": lambda loop: loop.set_task_factory(None),
    "name look-up": lambda loop: loop.getaddrinfo("localhost", 1),
    "stop": lambda loop: loop.stop(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_reaches_outside_is_refused_even_if_the_refusal_is_caught(what: str) -> None:
    caught: list[BaseException] = []

    async def workflow(ctx: Ctx) -> Any:
        await ctx.step(plus_one, 1)
        try:
            await REFUSED[what](asyncio.get_running_loop())
        except Exception as error:  # noqa: BLE001  user code like this is what is tested
            caught.append(error)
        return await ctx.step(plus_one, 2)

    with pytest.raises(NotAllowedInWorkflow):
        play(workflow)
    assert isinstance(caught[0], NotAllowedInWorkflow)


def test_io_names_the_step_as_its_place() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await asyncio.open_connection("localhost", 80)

    with pytest.raises(NotAllowedInWorkflow, match=r"network I/O.*do it in a step: await ctx\.step"):
        play(workflow)


@pytest.mark.parametrize("swallow", [False, True])
def test_as_completed_over_coroutines_is_refused(swallow: bool) -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def branch(x: int) -> int:
            return await ctx.step(plus_one, x)

        try:
            return [await each for each in asyncio.as_completed([branch(x) for x in range(5)])]
        except Exception:
            if swallow:
                return await ctx.step(plus_one, 0)
            raise

    with pytest.raises(NotAllowedInWorkflow, match="Create the tasks first"):
        play(workflow)


def test_as_completed_over_operations_is_refused() -> None:
    async def workflow(ctx: Ctx) -> Any:
        return [await each for each in asyncio.as_completed([ctx.step(plus_one, x) for x in range(5)])]

    with pytest.raises(NotAllowedInWorkflow, match="as_completed"):
        play(workflow)


def misuse_of(workflow: Workflow, kind: type[Misuse], match: str) -> None:
    with pytest.raises(kind, match=match):
        play(workflow)


def test_a_repeated_name_stops_the_run_even_if_it_is_caught() -> None:
    async def workflow(ctx: Ctx) -> Any:
        try:
            await asyncio.gather(ctx.step("mail", plus_one, 1), ctx.step("mail", plus_one, 2))
        except Exception:  # noqa: BLE001  user code like this is what is tested
            return await ctx.step(plus_one, 1)

    misuse_of(workflow, DuplicateName, r'"mail" is used twice.*"mail-\{n\}"')


def test_an_operation_that_is_never_awaited_is_named_at_the_end() -> None:
    async def workflow(ctx: Ctx) -> Any:
        ctx.step("mail", plus_one, 1)
        return 5

    misuse_of(workflow, UnawaitedOperation, r'step "mail" was called and never awaited')


def test_a_block_that_is_never_awaited_is_named_at_the_end() -> None:
    async def branch(ctx: Ctx) -> int:
        return 1

    async def workflow(ctx: Ctx) -> Any:
        ctx.join("both", {"a": branch})
        return 5

    misuse_of(workflow, UnawaitedOperation, r'join "both" was called and never awaited')


def test_an_operation_that_a_branch_forgets_is_named() -> None:
    async def branch(ctx: Ctx) -> int:
        ctx.sleep(5)
        return 1

    async def workflow(ctx: Ctx) -> Any:
        return await ctx.join("both", {"a": branch})

    misuse_of(workflow, UnawaitedOperation, r'sleep "both/a/sleep"')


def test_an_operation_whose_task_is_cancelled_before_it_starts_is_not_forgotten() -> None:
    async def workflow(ctx: Ctx) -> Any:
        task = asyncio.create_task(ctx.step(plus_one, 1))
        task.cancel()
        return len(await asyncio.gather(task, return_exceptions=True))

    assert play(workflow)[0] == "returned 1"


def test_an_operation_is_awaited_once() -> None:
    async def workflow(ctx: Ctx) -> Any:
        operation = ctx.step(plus_one, 1)
        await operation
        try:
            await operation
        except RuntimeError as error:
            return str(error)

    assert "awaited twice" in play(workflow)[0]


def test_an_operation_inside_a_step_is_refused_and_stops_the_run() -> None:
    async def workflow(ctx: Ctx) -> Any:
        def body() -> int:
            try:
                ctx.step(plus_one, 1)
            except OperationInsideStep:
                return 7
            raise AssertionError

        return await ctx.step(body)

    misuse_of(workflow, OperationInsideStep, 'step "plus_one" was called outside the workflow')


def test_an_operation_in_a_thread_is_refused() -> None:
    errors: list[BaseException] = []

    async def workflow(ctx: Ctx) -> Any:
        def call() -> None:
            try:
                ctx.step(plus_one, 1)
            except BaseException as error:  # noqa: BLE001  the same
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    misuse_of(workflow, OperationInsideStep, "outside the workflow")
    assert len(errors) == 1


def test_a_busy_loop_is_found() -> None:
    async def workflow(ctx: Ctx) -> Any:
        while True:  # noqa: ASYNC110  that is the fault
            await asyncio.sleep(0)

    opened = open_run(workflow)
    opened.execution.loop.max_callbacks = 10_000
    with pytest.raises(BusyLoop, match="without waiting"):
        opened.execution.advance()
    opened.execution.unwind()


async def wait_for_nothing(_: Ctx) -> None:
    await asyncio.Event().wait()


async def lock_twice(_: Ctx) -> None:
    lock = asyncio.Lock()
    async with lock, lock:
        pass


@pytest.mark.parametrize("workflow", [wait_for_nothing, lock_twice])
def test_a_run_that_nothing_can_wake_is_a_deadlock(workflow: Workflow) -> None:
    misuse_of(workflow, Deadlock, "no operation completes")


@pytest.mark.parametrize("cleanup", ["operation", "timer"])
def test_a_dropped_generator_that_waits_in_its_clean_up_is_found(cleanup: str) -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def numbers() -> AsyncIterator[int]:
            try:
                yield await ctx.step(plus_one, 1)
            finally:
                await (ctx.step("clean-up", plus_one, 2) if cleanup == "operation" else asyncio.sleep(1))

        async for _ in numbers():
            break
        return await ctx.step(plus_one, 3)

    misuse_of(workflow, UnawaitedOperation, "aclosing")


def test_a_dropped_generator_is_closed_in_place() -> None:
    async def workflow(ctx: Ctx) -> Any:
        seen: list[str] = []

        async def numbers() -> AsyncIterator[int]:
            try:
                yield await ctx.step(plus_one, 1)
            finally:
                seen.append("closed")

        async for _ in numbers():
            break
        return seen

    assert play(workflow)[0] == "returned ['closed']"


def test_misuse_that_a_workflow_raises_is_raised_as_such() -> None:
    async def workflow(ctx: Ctx) -> Any:
        raise NotAllowedInWorkflow("this")

    misuse_of(workflow, NotAllowedInWorkflow, "this")


def test_an_error_that_nobody_awaits_is_reported() -> None:
    async def workflow(ctx: Ctx) -> Any:
        async def background() -> None:
            raise ValueError("lost")

        task = asyncio.create_task(background())
        await ctx.sleep(1)
        del task
        await ctx.sleep(1)

    _, engine = play(workflow, suspend=0.0)
    [report] = engine.reports
    assert "ValueError" in report
    assert "lost" not in report
