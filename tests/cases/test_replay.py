"""Troubles with replay and determinism that users of such systems have had, tried on this one."""

import asyncio
import logging
import threading
import time
import uuid
from datetime import UTC, datetime
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest

from durable import App, Context, InvalidInput, RunBlocked, Signal
from durable.testing import ReplayFailed, TestEnvironment, assert_replays
from durable.testing.scanning import findings_in
from tests.histories.catalogue import scenarios

GO = Signal("go", int)
app = App("replay")


def work(n: object = 0) -> Any:
    return n


@app.workflow
async def three_at_once(ctx: Context) -> list[str]:
    return list(await asyncio.gather(*(ctx.step(name, work, name) for name in ("a", "b", "c"))))


@pytest.mark.parametrize("seed", range(40))
def test_RPL_01_parallel_steps_are_known_by_their_place_in_the_code_not_by_who_ended_first(seed: int) -> None:
    env = TestEnvironment(app)
    pauses = Random(seed)
    for name in ("a", "b", "c"):
        pause = pauses.uniform(0, 0.003)
        env.mock(name).runs(lambda value, pause=pause: (time.sleep(pause), value)[1])
    env.crash_at(3 + seed % 6, after=seed % 2 == 1)
    assert env.start(three_at_once, id="r").result() == ["a", "b", "c"]
    results = [entry.location for entry in env.history("r") if not entry.mark]
    assert sorted(results) == ["a", "b", "c"]


@app.workflow
async def as_completed(ctx: Context) -> list[str]:
    order: list[str] = []
    tasks = [asyncio.create_task(asyncio.wait_for(ctx.step(name, work, name), 3600)) for name in ("slow", "fast")]
    for task in asyncio.as_completed(tasks):
        order.append(await task)
        await ctx.step(f"after-{order[-1]}", work)
        await ctx.sleep(30)
    return order


def test_RPL_02_replay_follows_the_order_of_completion() -> None:
    env = TestEnvironment(app)
    env.mock("slow").runs(lambda value: (time.sleep(0.05), value)[1])
    handle = env.start(as_completed, id="r")
    env.run_until_idle()
    env.restart()
    assert handle.result() == ["fast", "slow"]
    assert_replays(env.export("r"), app)


def charge() -> str:
    return "charged"


def job(*lines: str, name: str = "job") -> App[None]:
    """An app whose workflow does these things one after another, then waits for a signal."""
    deployed = App("shapes")

    @deployed.workflow(name=name)
    async def code(ctx: Context) -> list[Any]:
        done: list[Any] = []
        for line in lines:
            match line:
                case "sleep":
                    await ctx.sleep(30)
                case "charge":
                    done.append(await ctx.step(charge))
                case "random":
                    done.append(ctx.random.random() and "random")
                case "uuid":
                    done.append(str(ctx.uuid()))
                case _:
                    done.append(await ctx.step(line, work, line))
        done.append(await ctx.wait_for_signal(GO))
        return done

    return deployed


def test_RPL_03_RPL_09_a_record_is_never_used_for_another_operation_and_the_error_says_all() -> None:
    env = TestEnvironment(job("sleep", "charge"))
    handle = env.start("job", id="r")
    env.advance(seconds=5)
    charging = env.mock(charge).returns("charged")
    env.deploy(job("charge", "sleep"))
    with pytest.raises(RunBlocked) as blocked:
        handle.result()
    for told in (str(blocked.value), str(env.get("r").reason)):
        assert "no longer matches the history" in told
        assert "sleep" in told
        assert "charge" in told
        assert "Deploy the code as it was" in told
        assert "ctx.get_version" in told
    assert charging.calls == []
    env.deploy(job("sleep", "charge"))
    handle.send(GO, 1)
    assert handle.result() == ["charged", 1]


@app.workflow
async def handler_per_message(ctx: Context) -> list[str]:
    log: list[str] = []
    running: set[asyncio.Task[None]] = set()

    async def handle(n: int) -> None:
        log.append(f"begin {n}")
        await ctx.step(f"handle-{n}", work, n)
        log.append(f"end {n}")

    for n in range(3):
        number = await ctx.wait_for_signal(GO)
        if all(task.done() for task in running):
            running.add(asyncio.create_task(handle(number)))
        else:
            log.append(f"busy {number}")
        if n == 1:
            await ctx.sleep(30)
    for task in running:
        await task
    return log


@pytest.mark.parametrize("moments", [(0, 0, 0), (0, 10, 10), (5, 0, 40), (0, 0, 40), (40, 40, 40)])
def test_RPL_04_messages_and_completions_are_replayed_in_their_recorded_order_from_every_prefix(
    moments: tuple[int, ...],
) -> None:
    env = TestEnvironment(app)
    handle = env.start(handler_per_message, id="r")
    for n, pause in enumerate(moments):
        env.advance(seconds=pause)
        env.restart()
        handle.send(GO, n)
    handle.result()
    document = env.export("r")
    for length in range(len(document["entries"]) + 1):
        prefix = {**document, "entries": document["entries"][:length]}
        prefix["run"] = {**document["run"], "status": "suspended", "waits": []}
        assert_replays(prefix, app)


def test_RPL_05_ids_do_not_shift_when_code_draws_elsewhere() -> None:
    env = TestEnvironment(job("uuid", "sleep"))
    handle = env.start("job", id="r")
    env.run_until_idle()
    before = TestEnvironment(job("uuid", "sleep"))
    expected = before.start("job", id="r")
    expected.send(GO, 1)
    env.deploy(job("random", "uuid", "sleep"))
    assert (env.get("r").id, env.export("r")["format"]) == ("r", 1)  # looking draws nothing
    handle.send(GO, 1)
    assert handle.result() == ["random", *expected.result()]


def test_RPL_06_plain_code_runs_again_at_every_turn_and_what_starts_work_belongs_into_submit() -> None:
    outside = App("outside")
    lines: list[str] = []
    tokens: list[str] = []

    @outside.workflow
    async def asks(ctx: Context) -> int:
        lines.append("plain")
        return await ctx.callback("bank", tokens.append, int, timeout="1 day")

    env = TestEnvironment(outside)
    handle = env.start(asks)
    env.run_until_idle()
    env.restart()
    env.complete_callback(tokens[0], 3)
    assert handle.result() == 3
    assert len(tokens) == 1
    assert len(lines) == 2


@app.workflow
async def chatty(ctx: Context) -> int:
    for n in range(6):
        await ctx.step(f"big-{n}", work, "x" * 200_000)
        await ctx.sleep(30)
        ctx.log.info("line %d", n)
    return 6


def test_RPL_07_RPL_08_a_line_is_logged_once_however_many_pages_and_turns_the_history_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="durable.workflow.chatty")
    env = TestEnvironment(app)
    handle = env.start(chatty, id="r")
    for _ in range(6):
        env.advance(seconds=31)
        env.restart()
    assert handle.result() == 6
    lines = [record for record in caplog.records if record.name == "durable.workflow.chatty"]
    assert [record.getMessage() for record in lines] == [f"line {n}" for n in range(6)]


def test_RPL_10_clocks_and_chance_in_workflow_code_are_named_with_what_to_write_instead() -> None:
    careless = App("careless")

    @careless.workflow
    async def guesses(ctx: Context) -> str:
        return f"{datetime.now(UTC)} {uuid.uuid4()} {time.time()}"  # noqa: TID251 - the mistake

    told = " ".join(str(finding) for finding in findings_in(careless))
    assert "use ctx.now()" in told
    assert "use ctx.uuid()" in told
    # No sandbox: libraries of any kind work in workflow code.
    assert "T" not in TestEnvironment(careless).start(guesses).result()


@pytest.mark.parametrize("operation", ["sleep", "wait", "child", "step"])
def test_RPL_11_a_durable_call_inside_a_step_is_refused_by_name_and_leaves_no_trace(operation: str) -> None:
    inside = App("inside")

    @inside.workflow
    async def leaf(ctx: Context) -> None: ...

    @inside.workflow
    async def nests(ctx: Context) -> None:
        def body() -> None:
            match operation:
                case "sleep":
                    _ = ctx.sleep(1)
                case "wait":
                    _ = ctx.wait_for_signal(GO)
                case "child":
                    _ = ctx.child(leaf)
                case _:
                    _ = ctx.step(work)

        await ctx.step("outer", body)

    env = TestEnvironment(inside)
    with pytest.raises(RunBlocked, match="outside the workflow's own code"):
        env.start(nests, id="r").result()
    assert env.history("r") == []


def test_RPL_12_recorded_histories_are_kept_and_replayed_by_every_later_version() -> None:
    covered = [one for one in scenarios() if one.file.exists()]
    assert len(covered) > 50
    for one in covered[:: len(covered) // 5]:  # all of them are replayed in tests/histories
        assert_replays(one.file, one.app)
    with pytest.raises(InvalidInput, match="its format is 2"):
        assert_replays({"format": 2}, app)


@app.workflow
async def overlapping(ctx: Context) -> int:
    together: list[int] = []

    def meets(barrier: Any) -> int:
        barrier.wait(5)
        return 1

    barrier = threading.Barrier(2)
    together += await asyncio.gather(ctx.step("a", meets, barrier), ctx.step("b", meets, barrier))
    return sum(together)


@app.workflow
async def computes(ctx: Context) -> int:
    await ctx.sleep(0)
    return sum(n % 7 for n in range(2_000_000))


def test_RPL_13_sync_steps_of_a_gather_overlap_and_long_computing_is_allowed() -> None:
    env = TestEnvironment(app)
    assert env.start(overlapping).result() == 2
    assert env.start(computes).result() > 0


def test_RPL_09_the_replay_test_names_what_was_recorded_and_what_was_asked_for() -> None:
    env = TestEnvironment(job("first", "second"))
    env.start("job", id="r")
    env.run_until_idle()
    with pytest.raises(ReplayFailed, match=r"(?s)first.*other"):
        assert_replays(env.export("r"), job("other", "second"))
