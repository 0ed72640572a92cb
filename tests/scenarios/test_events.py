"""An event reaches every run that waits for it and matches, whenever it comes, and nobody else."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from durable import App, Context, Event, InvalidInput, LimitExceeded, RunFailed, Signal, WaitTimeout
from durable.model.envelope import Publish
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World


class Plan(StrEnum):
    GOLD = "gold"
    FREE = "free"


@dataclass
class Customer:
    id: str
    plan: Plan = Plan.FREE


class Settled(BaseModel):
    id: str
    amount: int = 0
    customer: Customer = Field(default_factory=lambda: Customer("c"), alias="buyer")


SETTLED = Event("payment.settled", Settled)
GO = Signal("go", int)

app = App("events")
broken: list[int] = []


def settled(id: str, amount: int = 0, **fields: Any) -> Settled:
    return Settled.model_validate({"id": id, "amount": amount, **fields})


@app.workflow
async def waiting(ctx: Context, id: str) -> int:
    return (await ctx.wait_for_event(SETTLED, match={"id": id})).amount


@app.workflow
async def any_event(ctx: Context) -> str:
    return (await ctx.wait_for_event(SETTLED)).id


@app.workflow
async def gold(ctx: Context) -> str:
    return (await ctx.wait_for_event(SETTLED, match={"customer.plan": Plan.GOLD, "amount": "5"})).id


@app.workflow
async def patient(ctx: Context, id: str) -> int:
    try:
        return (await ctx.wait_for_event(SETTLED, match={"id": id}, timeout="1h")).amount
    except WaitTimeout:
        return -1


@app.workflow
async def with_default(ctx: Context) -> str:
    event = await ctx.wait_for_event(SETTLED, timeout="1h", default=None)
    return "nothing" if event is None else event.id


@app.workflow
async def at_once(ctx: Context) -> str:
    event = await ctx.wait_for_event(SETTLED, timeout=0, default=None)
    return "nothing" if event is None else event.id


@app.workflow
async def by_name(ctx: Context) -> int:
    return await ctx.wait_for_event("weather", int)


@app.workflow
async def plain_match(ctx: Context) -> dict[str, Any]:
    return await ctx.wait_for_event("weather", dict[str, Any], match={"where.city": "Bern", "sunny": True})


@app.workflow
async def one_after_another(ctx: Context, count: int) -> list[str]:
    return [(await ctx.wait_for_event(SETTLED)).id for _ in range(count)]


@app.workflow
async def both(ctx: Context) -> list[str]:
    one, two = await asyncio.gather(ctx.wait_for_event(SETTLED), ctx.wait_for_event(SETTLED, match={"id": "a"}))
    return [one.id, two.id]


@app.workflow
async def racing(ctx: Context) -> str:
    async def event(ctx: Context) -> str:
        return (await ctx.wait_for_event(SETTLED)).id

    async def signal(ctx: Context) -> str:
        return str(await ctx.wait_for_signal(GO))

    winner = await ctx.race("first", {"event": event, "signal": signal})
    await ctx.sleep("1 day")
    return str(winner.value)


def fail() -> None:
    if broken:
        raise ValueError("broken")


@app.workflow
async def fails_beside(ctx: Context) -> str:
    wait = asyncio.create_task(ctx.wait_for_event(SETTLED))
    await ctx.sleep("1m")
    await ctx.step(fail)
    return (await wait).id


def listed(env: TestEnvironment, event: str = "payment.settled") -> list[str]:
    page = env.ports.store.subscriptions(event)
    assert page.cursor is None
    return [subscription.run_id for subscription in page.subscriptions]


def test_who_matches_gets_it_and_nobody_else(world: World) -> None:
    with world(app) as env:
        a, b = env.start(waiting, "a", id="r-a"), env.start(waiting, "b", id="r-b")
        env.run_until_idle()
        assert listed(env) == ["r-a", "r-b"]
        assert env.get("r-a").reason == 'event "payment.settled"'
        env.publish_event(SETTLED, settled("a", 5))
        assert a.result() == 5
        assert env.get("r-b").status == "suspended"
        assert listed(env) == ["r-b"]
        env.publish_event(SETTLED, settled("b", 7))
        assert b.result() == 7
        assert (listed(env), env.get("r-a").undelivered) == ([], 0)


def test_fields_are_named_by_their_way_and_compared_as_they_are_stored(world: World) -> None:
    with world(app) as env:
        handle = env.start(gold)
        env.run_until_idle()
        env.publish_event(SETTLED, settled("1", 5))
        env.publish_event(SETTLED, settled("2", 4, buyer=Customer("c", Plan.GOLD)))
        env.publish_event(SETTLED, settled("3", 5, buyer=Customer("c", Plan.GOLD)))
        assert handle.result() == "3"


def test_a_payload_from_outside_may_use_the_other_names_of_its_fields(world: World) -> None:
    with world(app) as env:
        handle = env.start(gold)
        env.run_until_idle()
        env.publish_event("payment.settled", {"id": "x", "amount": 5, "buyer": {"id": "c", "plan": "gold"}})
        assert handle.result() == "x"


def test_a_plain_name_and_plain_payloads_do(world: World) -> None:
    with world(app) as env:
        number, place = env.start(by_name), env.start(plain_match)
        env.run_until_idle()
        env.publish_event("weather", 3)
        env.publish_event("weather", {"where": {"city": "Bern"}, "sunny": 1})
        env.publish_event("weather", {"where": "Bern", "sunny": True})
        env.publish_event("weather", {"where": {"city": "Bern"}, "sunny": True, "n": 4})
        assert number.result() == 3
        assert place.result() == {"where": {"city": "Bern"}, "sunny": True, "n": 4}


def test_fifty_runs_get_one_event(world: World) -> None:
    with world(app) as env:
        handles = [env.start(any_event) for _ in range(50)]
        env.run_until_idle()
        env.publish_event(SETTLED, settled("a"))
        assert [handle.result() for handle in handles] == ["a"] * 50
        assert listed(env) == []


def test_an_event_that_takes_several_invocations_reaches_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("durable.engine.events.PAGE", 3)
    monkeypatch.setattr("durable.engine.events.PAGES", 2)
    with TestEnvironment(app) as env:
        handles = [env.start(any_event) for _ in range(20)]
        env.run_until_idle()
        env.publish_event(SETTLED, settled("a"), buffer="1h")
        assert [handle.result() for handle in handles] == ["a"] * 20
        late = env.start(any_event)
        env.run_until_idle()
        assert env.get(late.id).status == "suspended"  # somebody on an earlier page had waited for it


def test_a_wait_ends_at_its_time_and_is_off_the_list(world: World) -> None:
    with world(app) as env:
        timed, default = env.start(patient, "a"), env.start(with_default)
        assert (timed.result(), default.result(), listed(env)) == (-1, "nothing", [])


def test_an_event_that_came_in_time_counts_in_a_late_turn(world: World) -> None:
    with world(app) as env:
        handle = env.start(patient, "a")
        env.run_until_idle()
        env.advance(minutes=59, seconds=58)
        env.faults.fail_next_call("store.acquire")  # the message is there, its turn comes after the deadline
        env.publish_event(SETTLED, settled("a", 5))
        assert handle.result() == 5


def test_an_event_before_the_wait_does_not_count(world: World) -> None:
    with world(app) as env:
        env.publish_event(SETTLED, settled("a", 5))
        env.run_until_idle()
        handle = env.start(patient, "a")
        assert (handle.result(), env.start(at_once).result()) == (-1, "nothing")


def test_a_kept_event_is_for_whoever_comes_late_while_it_is_kept(world: World) -> None:
    with world(app) as env:
        env.publish_event(SETTLED, settled("a", 5), id="e-1", buffer="2h")
        env.publish_event(SETTLED, settled("a", 6), id="e-2", buffer="2h")
        env.run_until_idle()
        env.advance(hours=1)
        assert [env.start(patient, "a").result() for _ in range(2)] == [5, 5]
        assert env.start(at_once).result() == "a"
        assert env.start(patient, "b").result() == -1
        env.advance(hours=1)
        assert env.start(patient, "a").result() == -1


def test_each_run_has_a_kept_event_once(world: World) -> None:
    with world(app) as env:
        for n in (1, 2):
            env.publish_event(SETTLED, settled(f"a{n}"), id=f"e-{n}", buffer="2h")
        env.run_until_idle()
        handle = env.start(one_after_another, 3)
        env.run_until_idle()
        assert env.get(handle.id).status == "suspended"
        env.publish_event(SETTLED, settled("a3"))
        assert handle.result() == ["a1", "a2", "a3"]


def test_an_event_that_somebody_waited_for_is_not_kept(world: World) -> None:
    with world(app) as env:
        handle = env.start(patient, "a")
        env.run_until_idle()
        env.publish_event(SETTLED, settled("a", 5), id="e-1", buffer="2h")
        assert handle.result() == 5
        env.publish_event(SETTLED, settled("a", 5), id="e-1", buffer="2h")
        env.run_until_idle()
        assert env.start(patient, "a").result() == -1


def test_an_event_and_a_wait_at_the_same_moment_find_each_other(world: World) -> None:
    with world(app) as env:
        handle = env.start(one_after_another, 2)
        env.publish_event(SETTLED, settled("a"), buffer="1h")
        env.run_until_idle()
        assert len(env.history(handle.id)) >= 2
        env.publish_event(SETTLED, settled("b"))
        assert handle.result() == ["a", "b"]


def test_the_same_event_again_is_no_other_event(world: World) -> None:
    with world(app) as env:
        handle = env.start(one_after_another, 2)
        env.run_until_idle()
        for _ in range(3):
            env.publish_event(SETTLED, settled("a"), id="e-1")
            env.run_until_idle()
            env.advance(minutes=10)
        assert env.get(handle.id).status == "suspended"
        env.publish_event(SETTLED, settled("b"), id="e-2")
        assert handle.result() == ["a", "b"]


def test_two_waits_of_a_run_get_the_same_event(world: World) -> None:
    with world(app) as env:
        handle = env.start(both)
        env.run_until_idle()
        env.publish_event(SETTLED, settled("a"))
        assert handle.result() == ["a", "a"]


def test_the_loser_of_a_race_is_off_the_list(world: World) -> None:
    with world(app) as env:
        handle = env.start(racing)
        env.run_until_idle()
        assert listed(env) == [handle.id]
        handle.send(GO, 1)
        env.run_until_idle()
        assert listed(env) == []
        assert handle.result() == "1"


def test_a_run_that_is_cancelled_or_terminated_is_off_the_list(world: World) -> None:
    with world(app) as env:
        one, two = env.start(any_event), env.start(any_event)
        env.run_until_idle()
        env.cancel(one.id)
        env.terminate(two.id)
        env.run_until_idle()
        env.advance(minutes=3)
        assert listed(env) == []


def test_a_run_that_ends_otherwise_is_off_the_list_and_back_when_it_is_retried(world: World) -> None:
    broken.append(1)
    with world(app) as env:
        handle = env.start(fails_beside)
        with pytest.raises(RunFailed):
            handle.result()
        assert listed(env) == []
        broken.clear()
        env.retry(handle.id)
        env.run_until_idle()
        assert listed(env) == [handle.id]
        env.publish_event(SETTLED, settled("a"))
        assert handle.result() == "a"


def test_who_cannot_read_the_payload_does_not_stop_the_others(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with world(app) as env:
        number, place = env.start(by_name), env.start(plain_match)
        env.run_until_idle()
        env.publish_event("weather", {"where": {"city": "Bern"}, "sunny": True})
        assert place.result()["sunny"] is True
        assert env.get(number.id).status == "suspended"
        assert "stays unread" in caplog.text
        env.publish_event("weather", 4)
        assert number.result() == 4


def test_what_lists_a_run_that_has_ended_is_taken_off_by_the_next_event(world: World) -> None:
    with world(app) as env:
        handle = env.start(any_event)
        env.run_until_idle()
        (row,) = env.ports.store.subscriptions("payment.settled").subscriptions
        env.publish_event(SETTLED, settled("a"))
        handle.result()
        env.ports.store.put_subscription(row)
        env.publish_event(SETTLED, settled("b"))
        env.run_until_idle()
        assert (listed(env), env.get(handle.id).undelivered) == ([], 0)


@app.workflow
async def asks(ctx: Context, match: dict[str, Any]) -> str:
    try:
        await ctx.wait_for_event(SETTLED, match=match)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("match", "complaint"),
    [
        ({"order": "a"}, 'Settled has no field "order" (its fields: id, amount, customer)'),
        ({"customer.name": "a"}, 'Customer has no field "name" (its fields: id, plan)'),
        ({"id.x": "a"}, 'str has no field "x" (its fields: none)'),
        ({"amount": "much"}, "valid integer"),
        ({"customer": {"id": "c"}}, "a field is compared with a text, a number, a truth value or None"),
    ],
)
def test_what_no_payload_has_is_refused(match: dict[str, Any], complaint: str) -> None:
    with TestEnvironment(app) as env:
        assert complaint in env.start(asks, match).result()


def test_what_is_no_event_is_not_published() -> None:
    wrong: Any = {"amount": 1}
    env = TestEnvironment(app)
    with pytest.raises(InvalidInput, match="payload of event"):
        env.publish_event(SETTLED, wrong)
    with pytest.raises(LimitExceeded):
        env.publish_event("weather", "x" * 300_000)
    with pytest.raises(InvalidInput, match="14 days"):
        env.publish_event("weather", 1, buffer="15 days")
    with pytest.raises(TypeError, match="an Event, or a name"):
        env.publish_event(wrong, 1)
    assert not env.world.services.timers.pending


def test_the_clock_of_a_publisher_does_not_count_where_it_is_ahead(world: World) -> None:
    with world(app) as env:
        handle = env.start(patient, "a")
        env.run_until_idle()
        now = env.ports.clock.now()
        env.ports.timers.send(Publish(event="payment.settled", id="e", body='{"id": "a", "amount": 5}', at=now + 9e6))
        assert handle.result() == 5


def test_duplicates_late_and_reordered_events_are_no_trouble() -> None:
    for plan in ("duplicate_next", "reorder_next"):
        env = TestEnvironment(app)
        handle = env.start(one_after_another, 2)
        env.run_until_idle()
        getattr(env.faults, plan)()
        env.publish_event(SETTLED, settled("a"), id="1")
        env.run_until_idle()
        env.publish_event(SETTLED, settled("b"), id="2")
        env.advance(minutes=5)
        env.publish_event(SETTLED, settled("c"), id="3")
        first, second = handle.result()
        assert first != second
