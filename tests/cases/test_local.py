"""Troubles with local runs and tests that users of such systems have had, tried on this one."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from durable import App, Backoff, Call, Context, InvalidName, LimitExceeded, Signal, Step, StepFailed
from durable.adapters.memory import VirtualClock
from durable.cli.commands import run as command
from durable.local.sources import Schedules
from durable.model.limits import BLOB_BYTES
from durable.testing import TestEnvironment, kill_process
from tests.contract.strict import RefusedByAws
from tests.contract.worlds import AwsWorld

GO = Signal("go", str)
app = App("local")


def work(n: int = 0) -> Any:
    return n


@app.remote_step(timeout="1h", retries=0)
def remote() -> None:
    kill_process()


@app.workflow
async def long(ctx: Context) -> list[str]:
    told: list[str] = [await ctx.wait_for_signal(GO, timeout="24h", default="nobody")]
    told.append(str(await ctx.step(Step("flaky", retries=1, backoff=Backoff("1h", max="1h")), work)))
    await ctx.sleep("7 days")
    try:
        await ctx.call(Call(total="2h"), remote)
    except StepFailed as failed:
        told.append(failed.kind)
    return told


def test_LOC_01_everything_that_waits_is_skipped_and_the_history_shows_the_time() -> None:
    env = TestEnvironment(app)
    env.mock("flaky").raises(ConnectionError).returns(7)
    before = env.now
    assert env.start(long, id="r").result() == ["nobody", "7", "timeout"]
    assert env.now - before >= timedelta(days=8, hours=2)
    handle = env.start(long, id="second")
    env.advance(hours=3)
    handle.send(GO, "at hour 3")
    assert handle.result()[0] == "at hour 3"


@app.workflow
async def three_flaky(ctx: Context) -> list[int]:
    flaky = Step(retries=2, backoff=Backoff("1m", max="1m"))
    return list(await asyncio.gather(*(ctx.step(flaky.named(f"s{n}"), work, n) for n in range(3))))


def test_LOC_02_retries_that_become_due_together_are_one_turn() -> None:
    env = TestEnvironment(app)
    for n in range(3):
        env.mock(f"s{n}").raises(ConnectionError).raises(ConnectionError).returns(n)
    assert env.start(three_flaky, id="r").result() == [0, 1, 2]
    assert set(env.world.executions.values()) == {3}
    assert env.get("r").epoch - env.get("r").born <= 4


@app.workflow
async def echoes(ctx: Context, text: str) -> list[str]:
    await ctx.sleep(60)
    return [text, await ctx.wait_for_signal(GO), await ctx.wait_for_signal(GO)]


@pytest.mark.parametrize("place", ["memory", "aws"])
def test_LOC_03_limits_ids_duplicates_and_order_are_alike_in_memory_and_on_aws(
    place: str, on_aws: Callable[[App[Any]], TestEnvironment]
) -> None:
    env = on_aws(app) if place == "aws" else TestEnvironment(app)
    with pytest.raises(InvalidName):
        env.start(echoes, "x", id="a b")
    with pytest.raises(LimitExceeded):
        env.start(echoes, "x" * BLOB_BYTES)
    handle = env.start(echoes, "text", id="r")
    env.run_until_idle()
    env.faults.duplicate_next()
    for text, message_id in (("one", "m1"), ("one", "m1"), ("two", "m2")):
        handle.send(GO, text, id=message_id)
    env.faults.reorder_next()
    assert handle.result() == ["text", "one", "two"]


def test_LOC_04_what_aws_refuses_and_the_emulator_accepts_fails_our_tests(aws: AwsWorld) -> None:
    dynamodb, table = aws.clients.dynamodb, aws.settings.table
    item: Any = {"pk": {"S": "p"}, "sk": {"S": "s"}}
    put: Any = {"Put": {"TableName": table, "Item": item}}
    for refused in (
        lambda: dynamodb.put_item(TableName=table, Item={**item, "big": {"S": "x" * 410_000}}),
        lambda: dynamodb.transact_write_items(TransactItems=[put, put]),
        lambda: dynamodb.put_item(TableName=table, Item=item, ExpressionAttributeNames={"#unused": "x"}),
    ):
        with pytest.raises(RefusedByAws):
            refused()


def test_LOC_05_a_schedule_that_the_emulator_only_stores_is_fired_by_our_own_clock(aws: AwsWorld) -> None:
    due_at = aws.ports.clock.now() + 3_600
    aws.ports.timers.arm("r", due_at)
    assert [schedule.run_id for schedule in aws.schedules()] == ["r"]
    firing = Schedules(
        [aws.settings.schedule_group], aws.clients.scheduler, aws.clients.sqs,
        clock=VirtualClock(due_at), report=[].append,
    )  # fmt: skip
    assert (firing.fire(), firing.fire()) == (1, 0)
    assert [message.envelope.run_id for message in aws.receive_runs()] == ["r"]
    assert aws.schedules() == []


def test_LOC_06_environments_share_nothing() -> None:
    first, second = TestEnvironment(app), TestEnvironment(app)
    first.start(echoes, "first", id="r")
    second.start(echoes, "second", id="r")
    first.advance(days=1)
    second.run_until_idle()
    assert first.now - second.now == timedelta(days=1)
    assert (first.get("r").input, second.get("r").input) == ('"first"', '"second"')


CODE = """
from durable import App, Context
app = App("shop")
def work() -> int: return 1
@app.workflow(name="echoes")
async def echoes(ctx: Context, text: str) -> None:
    await ctx.step(work)
    await ctx.sleep(60)
"""


def test_LOC_07_one_command_replays_histories_on_changed_code_and_its_exit_code_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    env = TestEnvironment(app)
    files: list[str] = []
    for n in range(20):
        env.start(echoes, f"{n}", id=f"r{n}")
        env.run_until_idle()
        files.append(str(tmp_path / f"r{n}.json"))
        Path(files[-1]).write_text(json.dumps(env.export(f"r{n}")))
    (tmp_path / "changed_shop.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert command(["replay", *files, "--app", f"{__name__}:app"]) == 0
    assert command(["replay", *files, "--app", "changed_shop:app"]) == 1
    told = capsys.readouterr()
    assert "no longer matches" in told.out + told.err
