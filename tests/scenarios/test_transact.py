"""A transaction writes the author's tables exactly once, together with its record, whatever is lost or dies on the way."""

from typing import Any

import pytest

from durable import App, Context, RunBlocked, RunFailed, Step, StepFailed, TransactionRefused
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("transactions")


def reservation(sku: str) -> list[dict[str, dict[str, Any]]]:
    return [
        {
            "Update": {
                "TableName": "stock",
                "Key": {"sku": sku},
                "UpdateExpression": "SET #left = #left - :one",
                "ConditionExpression": "#left >= :one",
                "ExpressionAttributeNames": {"#left": "left"},
                "ExpressionAttributeValues": {":one": 1},
            }
        },
        {"Put": {"TableName": "orders", "Item": {"id": f"order-{sku}", "sku": sku, "cents": 12.5}}},
    ]


def confirm(sku: str) -> str:
    return f"confirmed {sku}"


@app.workflow
async def reserve(ctx: Context, sku: str) -> str:
    await ctx.transact("reserve", reservation(sku))
    await ctx.sleep("1h")
    return await ctx.step(Step(retries=20), confirm, sku)


@app.workflow
async def careful(ctx: Context, sku: str) -> str:
    try:
        await ctx.transact("reserve", reservation(sku))
    except TransactionRefused as refused:
        await ctx.sleep("1h")
        return f"item {refused.item}: {refused.reason}"
    return "reserved"


@app.workflow
async def ten_times(ctx: Context) -> None:
    for n in range(10):
        await ctx.transact(f"reserve-{n}", reservation("book"))


@app.workflow
async def ephemeral_first(ctx: Context, sku: str) -> str:
    said = await ctx.step(Step(ephemeral=True), confirm, sku)
    await ctx.transact("reserve", reservation(said))
    return said


def stocked(env: TestEnvironment, left: int = 5) -> TestEnvironment:
    env.table("stock", "sku").put({"sku": "book", "left": left})
    env.table("orders", "id")
    return env


def left_of(env: TestEnvironment) -> int:
    row = env.table("stock", "sku").get(sku="book")
    assert row is not None
    return int(row["left"])


def test_it_writes_everything_with_its_record() -> None:
    env = stocked(TestEnvironment(app))
    assert env.start(reserve, "book", id="r").result() == "confirmed book"
    assert left_of(env) == 4
    assert env.table("orders", "id").rows == [{"id": "order-book", "sku": "book", "cents": 12.5}]
    first, *_ = env.history("r")
    assert (first.location, first.kind) == ("reserve", "transact")


@pytest.mark.parametrize("after", [False, True])
def test_it_writes_once_when_the_reply_is_lost(*, after: bool) -> None:
    env = stocked(TestEnvironment(app))
    env.faults.fail_next_call("store.transact", after=after)
    assert env.start(reserve, "book", id="r").result() == "confirmed book"
    assert left_of(env) == 4
    assert env.calls.count("store.transact") == (1 if after else 2)


@pytest.mark.parametrize("after", [False, True])
def test_it_writes_once_wherever_the_process_dies(*, after: bool) -> None:
    env = stocked(TestEnvironment(app), left=10)
    for n in range(1, 30, 3):
        env.crash_at(n, after=after)
    env.start(ten_times, id="r").result()
    assert left_of(env) == 0


def test_a_turn_that_stood_still_writes_nothing_any_more() -> None:
    env = stocked(TestEnvironment(app))
    env.faults.freeze("10m", at=3)
    assert env.start(reserve, "book", id="r").result() == "confirmed book"
    assert left_of(env) == 4


def test_a_condition_that_fails_is_recorded_and_named() -> None:
    env = stocked(TestEnvironment(app), left=0)
    handle = env.start(careful, "book", id="r")
    env.run_until_idle()
    env.table("stock", "sku").put({"sku": "book", "left": 9})
    assert handle.result() == "item 0: ConditionalCheckFailed"
    assert env.table("orders", "id").rows == []
    assert left_of(env) == 9


def test_a_refusal_that_nobody_handles_fails_the_run() -> None:
    env = stocked(TestEnvironment(app), left=0)
    with pytest.raises(RunFailed, match="item 0 of the transaction was refused") as failure:
        env.start(reserve, "book", id="r").result()
    assert failure.value.error is not None
    assert failure.value.error.matches(StepFailed)


def test_what_is_held_back_is_written_first() -> None:
    env = stocked(TestEnvironment(app))
    env.table("stock", "sku").put({"sku": "confirmed book", "left": 1})
    env.start(ephemeral_first, "book", id="r").result()
    assert [entry.location for entry in env.history("r")] == ["confirm", "reserve"]


def test_a_table_that_is_not_there_is_a_refusal() -> None:
    with pytest.raises(RunFailed, match='there is no table "stock"'):
        TestEnvironment(app).start(reserve, "book", id="r").result()


PUT = {"Put": {"TableName": "t", "Item": {"pk": "a"}}}


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([], "got no items"),
        (PUT, "takes a list of items, not dict"),
        ([PUT] * 99, "99 items; the limit is 98 items"),
        ([3], "item 0 of ctx.transact() must be a dict with one key of Put, Update"),
        ([PUT, {"Write": {}}], "item 1 of ctx.transact() must be a dict with one key"),
        ([{"Put": PUT["Put"], "Delete": {}}], "must be a dict with one key"),
        ([{"Put": 3}], 'the value of "Put" must be a dict'),
        ([{"Put": {"TableName": "t"}}], '"Put" needs Item'),
        ([{"Update": {"TableName": "t", "Key": {}}}], '"Update" needs UpdateExpression'),
        ([{"Delete": {"TableName": "t", "Key": {}, "Item": {}}}], '"Delete" does not take Item'),
        ([{"ConditionCheck": {"TableName": "t", "Key": {}}}], '"ConditionCheck" needs ConditionExpression'),
    ],
)
def test_a_wrong_shape_is_refused_at_the_call(world: World, items: Any, says: str) -> None:
    wrong = App("wrong")

    @wrong.workflow
    async def wrongly(ctx: Context) -> str:
        try:
            await ctx.transact("t", items)
        except (TypeError, ValueError) as refused:
            return str(refused)
        return "accepted"

    assert says in world(wrong).start(wrongly, id="r").result()


def test_a_transaction_that_became_a_step_is_a_divergence() -> None:
    changed = App("transactions")

    @changed.workflow(name="reserve")
    async def other(ctx: Context, sku: str) -> str:
        return await ctx.step("reserve", confirm, sku)

    env = stocked(TestEnvironment(app))
    handle = env.start(reserve, "book", id="r")
    env.run_until_idle()
    env.deploy(changed)
    with pytest.raises(RunBlocked, match="transact"):
        handle.result()
    env.deploy(app)
    assert handle.result() == "confirmed book"


def with_stock(env: TestEnvironment, handle: Any) -> None:
    del handle
    stocked(env)
    env.world.after_delivery = lambda: _sold_once(env)


def _sold_once(env: TestEnvironment) -> None:
    assert left_of(env) in {4, 5}


@pytest.mark.parametrize("workflow", [reserve, careful], ids=lambda one: one.name)
def test_dying_anywhere_changes_nothing(workflow: Any) -> None:
    TestEnvironment(app).run_crash_matrix(workflow, "book", script=with_stock)
