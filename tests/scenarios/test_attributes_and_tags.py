"""Runs are found by the tags and attributes that their code sets, also while it goes on."""

from datetime import UTC, datetime
from typing import Any

import pytest

from durable import App, Condition, Context, InvalidInput, Signal
from durable.testing import TestEnvironment

GO = Signal("go", int)
app = App("searched")


@app.workflow(tags=["shop"])
async def order(ctx: Context, amount: int) -> tuple[str, ...]:
    before = ctx.run.tags
    ctx.set_attributes(amount=amount, region="eu" if amount < 500 else "us", urgent=amount > 900)
    ctx.add_tags("big" if amount > 100 else "small")
    await ctx.wait_for_signal(GO)
    ctx.set_attributes(amount=amount + 1, since=datetime(2026, 1, 2, tzinfo=UTC))
    await ctx.wait_for_signal(GO)
    assert ctx.run.tags == before
    return before


@app.workflow
async def too_much(ctx: Context) -> None:
    for n in range(11):
        ctx.add_tags(f"tag-{n}")
    await ctx.sleep(1)


def found(env: TestEnvironment, where: Any = None, tag: str | None = None) -> list[str]:
    return sorted(row.id for row in env.list(order, where=where, tag=tag).runs)


def test_runs_are_listed_by_tag_and_by_attributes(world: Any) -> None:
    with world(app) as env:
        for amount in (50, 400, 950):
            env.start(order, amount, id=f"o-{amount}")
        env.run_until_idle()
        assert found(env, "amount >= 400") == ["o-400", "o-950"]
        assert found(env, "amount >= 100 and region == 'eu'") == ["o-400"]
        assert found(env, "urgent == true") == ["o-950"]
        assert found(env, 'region != "eu"', tag="big") == ["o-950"]
        assert found(env, tag="small") == ["o-50"]
        assert found(env, tag="shop") == ["o-400", "o-50", "o-950"]
        assert found(env, [Condition("amount", "<", 100)]) == ["o-50"]
        assert found(env, "nothing == 1") == []
        assert env.count(order, where="amount < 500") == 2


def test_attributes_that_are_set_later_replace_those_of_their_names() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(order, 50, id="o", tags=["mine"])
        handle.send(GO, 1)
        env.run_until_idle()
        assert found(env, "amount == 51 and region == 'eu' and since > '2026-01-01'") == ["o"]
        env.restart()
        handle.send(GO, 1)
        assert handle.result() == ("shop", "mine")
        assert env.get("o").tags == ("shop", "mine", "small")


def test_tags_beyond_the_limit_block_the_run() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(too_much)
        env.run_until_idle()
        assert "the limit is 10 tags" in str(env.get(handle.id).reason)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("amount", "at 'amount'"),
        ("amount >= 100 or region == 'eu'", "at \"or region == 'eu'\""),
        ("amount = 3", "at 'amount = 3'"),
        ("amount > 3 and ", "at its end"),
        ("region == eu", "at 'region == eu'"),
    ],
)
def test_a_filter_that_is_not_understood_says_from_where_on(where: str, message: str) -> None:
    with TestEnvironment(app) as env, pytest.raises(InvalidInput, match=message):
        env.list(order, where=where)
