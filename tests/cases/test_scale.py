"""Troubles with size and load that users of such systems have had, tried on this one."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from durable import App, Context, Signal
from durable.adapters.dynamodb import keys
from durable.errors import StoreUnavailable
from durable.local.template import Template
from durable.testing import TestEnvironment

GO = Signal("go", int)
ROOT = Path(__file__).parents[2]
app = App("scale")


def work(n: object = 0) -> Any:
    return n


@app.workflow
async def many_steps(ctx: Context, count: int) -> int:
    for n in range(count):
        await ctx.step(work, n)
    return count


def test_SCL_01_a_long_history_is_one_run_and_continue_as_new_is_there_for_longer_ones() -> None:
    env = TestEnvironment(app)
    assert env.start(many_steps, 5_000, id="r").result() == 5_000
    assert len(env.history("r")) == 5_000
    assert "continue_as_new" in (ROOT / "docs" / "versions.md").read_text()


@app.workflow(max_entries=200)
async def never_ends(ctx: Context) -> None:
    while True:
        await ctx.step(work)


def test_SCL_01_SCL_04_a_run_that_records_for_ever_is_warned_of_early_and_stopped_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = TestEnvironment(app)
    env.start(never_ends, id="r")
    env.run_until_idle()
    run = env.get("r")
    assert run.status == "blocked"
    assert "200" in str(run.reason)
    assert "continue_as_new" in str(run.reason)
    assert len(env.history("r")) <= 201
    warnings = [record.getMessage() for record in caplog.records if "entries" in record.getMessage()]
    assert warnings
    assert "continue_as_new" in warnings[0]
    env.terminate("r")


@pytest.mark.parametrize("count", [100, 1_000])
def test_SCL_02_a_step_costs_one_write_however_many_there_were_before(count: int) -> None:
    env = TestEnvironment(app)
    env.start(many_steps, count).result()
    calls = Counter(env.calls)
    assert calls["store.put_entry"] == count
    assert calls.total() <= count + 10


@app.workflow
async def waits_between(ctx: Context, count: int) -> int:
    for n in range(count):
        await ctx.step(work, n)
        await ctx.sleep(60)
    return count


def test_SCL_02_a_wake_of_a_warm_container_does_not_read_the_history_again() -> None:
    env = TestEnvironment(app)
    env.start(waits_between, 100).result()
    calls = Counter(env.calls)
    assert calls["store.load"] <= 110, "one page a turn: the mailbox"
    assert calls.total() <= 100 * 10


def test_SCL_03_no_function_of_the_circle_is_stopped_as_a_loop(template: Template) -> None:
    functions = template.of_type("AWS::Lambda::Function").values()
    assert {function["RecursiveLoop"] for function in functions} == {"Allow"}


@app.workflow
async def hands_over(ctx: Context, n: int) -> int:
    return n if n == 40 else await ctx.continue_as_new(hands_over, n + 1)


def test_SCL_03_a_run_may_hand_over_to_itself_forty_times_within_a_minute() -> None:
    env = TestEnvironment(app)
    before = env.now
    assert env.start(hands_over, 0, id="r").result() == 40
    assert (env.now - before).total_seconds() < 60


@app.workflow
async def spins(ctx: Context) -> None:
    while True:  # noqa: ASYNC110 - the mistake
        await asyncio.sleep(0)


def test_SCL_04_code_that_spins_without_an_operation_is_stopped_with_a_reason() -> None:
    env = TestEnvironment(app)
    env.start(spins, id="r")
    env.run_until_idle()
    assert env.get("r").status == "blocked"
    assert "keeps itself busy" in str(env.get("r").reason)


@app.workflow
async def renews(ctx: Context) -> None:
    await ctx.continue_as_new(renews)


def test_SCL_04_a_run_that_continues_as_new_at_once_for_ever_is_stopped() -> None:
    env = TestEnvironment(app)
    env.start(renews, id="r")
    for _ in range(1_500):
        env.world.deliver()
    assert env.get("r").status == "blocked"
    assert "continued as new 1,000 times" in str(env.get("r").reason)


@app.workflow
async def listens(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


def test_SCL_05_indexes_are_sharded_by_run() -> None:
    shards = Counter(keys.shard_of(f"run-{n}", 16) for n in range(10_000))
    assert len(shards) == 16
    assert max(shards.values()) < 2 * min(shards.values())


def test_SCL_05_a_sender_that_is_throttled_gets_a_typed_error() -> None:
    env = TestEnvironment(app)
    handle = env.start(listens)

    class Throttled:
        def send(self, envelope: object) -> None:
            raise StoreUnavailable("SQS: ThrottlingException")

    object.__setattr__(env.ports, "runs", Throttled())
    with pytest.raises(StoreUnavailable):
        handle.send(GO, 1)


@app.workflow
async def returns(ctx: Context, n: int) -> int:
    if n % 500 == 7:
        ctx.set_attributes(rare=True)
    return n


def test_SCL_06_SCL_07_a_listing_gives_all_page_by_page_and_counts_them() -> None:
    env = TestEnvironment(app)
    for n in range(1_250):
        env.start(returns, n, id=f"r{n}")
    env.run_until_idle()
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = env.list(returns, limit=100, cursor=cursor)
        seen += [row.id for row in page.runs]
        if page.cursor is None:
            break
        cursor = page.cursor
    assert len(seen) == len(set(seen)) == 1_250
    assert env.count(returns) == 1_250
    assert {row.id for row in env.list(returns, where="rare == true").runs} == {"r7", "r507", "r1007"}


flooded = App("flooded")
flooded.queue("shared", concurrency=2, key="tenant", fairness="key")


@flooded.remote_step(queue="shared")
def shared(what: dict[str, str]) -> str:
    return what["tenant"]


@flooded.workflow
async def calls(ctx: Context, tenant: str) -> str:
    return await ctx.call(shared, {"tenant": tenant})


def test_SCL_08_a_flood_of_one_tenant_does_not_hold_up_the_first_call_of_another() -> None:
    env = TestEnvironment(flooded)
    done: list[str] = []
    env.mock(shared).runs(lambda what: (done.append(what["tenant"]), what["tenant"])[1])
    for _ in range(9):
        env.start(calls, "big")  # of these two have a slot and seven wait when the other comes
    assert env.start(calls, "small").result() == "small"
    assert done.index("small") <= 4
