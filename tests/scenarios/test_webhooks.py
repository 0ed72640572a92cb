"""A run has an address that an outside system calls: calls are kept until the run waits for them."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from durable import (
    App,
    Branch,
    Context,
    HookResponse,
    InvalidToken,
    LimitExceeded,
    NotAvailable,
    NotStorable,
    RunEnded,
    Signal,
    StateKey,
    WaitTimeout,
)
from durable.adapters.signing import TextSigning
from durable.testing import TestEnvironment
from durable.testing.services import SIGNED_WITH, in_memory
from tests.scenarios.conftest import World

GO = Signal("go", str)
ADDRESS = StateKey("address", str)
app = App("webhooks")


class Settled(BaseModel):
    ok: bool


def url_of(env: TestEnvironment, run_id: str, key: StateKey[str] = ADDRESS) -> str:
    env.run_until_idle()
    url = env.get_state(run_id, key)
    assert url is not None
    return url


@app.workflow
async def pays(ctx: Context) -> bool:
    hook = ctx.webhook("provider")
    ctx.set_state(ADDRESS, hook.url)
    settled = await hook.wait(Settled, timeout="30m")
    return settled.ok


def test_a_call_reaches_the_code(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        url = url_of(env, handle.id)
        assert url.startswith("https://durable.test/hooks/")
        response = env.call_webhook(url, {"ok": True})
        assert (response.status, response.body) == (202, "")
        assert handle.result() is True


def test_nobody_calls(world: World) -> None:
    with world(app) as env:
        handle = env.start(waits_or_not)
        assert handle.result() == "nobody"


@app.workflow
async def waits_or_not(ctx: Context) -> str:
    hook = ctx.webhook("provider")
    try:
        return str(await hook.wait(dict[str, Any], timeout="30m"))
    except WaitTimeout:
        return "nobody"


@app.workflow
async def collects(ctx: Context) -> list[int]:
    hook = ctx.webhook("provider")
    ctx.set_state(ADDRESS, hook.url)
    await ctx.wait_for_signal(GO)
    return [await hook.wait(int), await hook.wait(int), await hook.wait(int)]


def test_calls_before_the_wait_are_taken_in_their_order(world: World) -> None:
    with world(app) as env:
        handle = env.start(collects)
        url = url_of(env, handle.id)
        for n in range(3):
            env.call_webhook(url, n)
            env.advance(seconds=1)
        handle.send(GO, "")
        assert handle.result() == [0, 1, 2]


def test_a_call_with_an_id_counts_once(world: World) -> None:
    with world(app) as env:
        handle = env.start(collects)
        url = url_of(env, handle.id)
        for n, number in enumerate(["a", "a", "b", "a", "c"]):
            env.call_webhook(url, n, id=number)
            env.run_until_idle()
        handle.send(GO, "")
        assert handle.result() == [0, 2, 4]


def test_a_call_that_does_not_fit_is_left_for_others(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        url = url_of(env, handle.id)
        env.call_webhook(url, "hello")
        env.run_until_idle()
        env.call_webhook(url, {"ok": False})
        assert handle.result() is False
        assert env.get(handle.id).undelivered == 1


@app.workflow
async def two_of_a_name(ctx: Context) -> list[str]:
    first, second = ctx.webhook("provider"), ctx.webhook("provider")
    ctx.set_state(StateKey("first", str), first.url)
    ctx.set_state(StateKey("second", str), second.url)
    return [await first.wait(str), await second.wait(str)]


def test_two_webhooks_of_a_name_have_two_addresses(world: World) -> None:
    with world(app) as env:
        handle = env.start(two_of_a_name)
        first = url_of(env, handle.id, StateKey("first", str))
        second = url_of(env, handle.id, StateKey("second", str))
        assert first != second
        env.call_webhook(second, "of the second")
        env.call_webhook(first, "of the first")
        assert handle.result() == ["of the first", "of the second"]


@app.workflow
async def in_a_branch(ctx: Context) -> str:
    hook = ctx.webhook("provider")
    ctx.set_state(ADDRESS, hook.url)

    async def called(ctx: Context) -> str:
        return await hook.wait(str)

    async def late(ctx: Context) -> str:
        await ctx.sleep("1h")
        return "late"

    winner = await ctx.race("first", Branch("called", called), Branch("late", late))
    return f"{winner.value}, then {await hook.wait(str)}"


def test_a_branch_waits_for_the_webhook_of_its_workflow(world: World) -> None:
    with world(app) as env:
        handle = env.start(in_a_branch)
        url = url_of(env, handle.id)
        env.call_webhook(url, "one")
        env.restart()
        env.run_until_idle()
        env.call_webhook(url, "two")
        assert handle.result() == "one, then two"


def test_the_loser_of_a_race_takes_no_call(world: World) -> None:
    with world(app) as env:
        handle = env.start(in_a_branch)
        url = url_of(env, handle.id)
        env.advance(hours=2)
        env.call_webhook(url, "one")
        assert handle.result() == "late, then one"


@app.workflow
async def answers(ctx: Context) -> None:
    told = HookResponse(status=200, body="<Response/>", content_type="application/xml", challenge="hub.challenge")
    hook = ctx.webhook("provider", respond=told)
    ctx.set_state(ADDRESS, hook.url)
    await hook.wait(str)


def test_callers_are_answered_as_the_code_says(world: World) -> None:
    with world(app) as env:
        handle = env.start(answers)
        response = env.call_webhook(url_of(env, handle.id), "hello")
        assert (response.status, response.body, response.content_type) == (200, "<Response/>", "application/xml")
        assert response.challenge == "hub.challenge"
        handle.result()


@app.workflow
async def talks_too_much(ctx: Context) -> None:
    try:
        ctx.webhook("provider", respond=HookResponse(body="x" * 3_000))
    except LimitExceeded:
        return


def test_a_long_answer_is_refused_where_it_is_written(world: World) -> None:
    with world(app) as env:
        env.start(talks_too_much).result()


@app.workflow
async def rounds(ctx: Context, n: int) -> str:
    hook = ctx.webhook("provider")
    if n == 1:
        ctx.set_state(ADDRESS, hook.url)
    said = await hook.wait(str)
    if n < 3:
        await ctx.continue_as_new(rounds, n + 1)
    return said


def test_an_address_is_good_for_the_runs_that_continue_its_own(world: World) -> None:
    with world(app) as env:
        handle = env.start(rounds, 1)
        url = url_of(env, handle.id)
        for said in ("one", "two", "three"):
            env.call_webhook(url, said)
            env.run_until_idle()
        assert handle.result() == "three"


def test_a_forged_or_a_spent_address_is_refused(world: World) -> None:
    with world(app) as env:
        handle = env.start(pays)
        url = url_of(env, handle.id)
        with pytest.raises(InvalidToken):
            env.call_webhook(url[:-1], {"ok": True})
        with pytest.raises(InvalidToken):
            env.complete_callback(url.rpartition("/")[2], {"ok": True})
        with pytest.raises(NotStorable):
            env.call_webhook(url, float("nan"))
        env.call_webhook(url, {"ok": True})
        handle.result()
        with pytest.raises(RunEnded):
            env.call_webhook(url, {"ok": True})


@app.workflow
async def hides_the_reason(ctx: Context) -> str:
    try:
        return ctx.webhook("provider").url
    except NotAvailable:
        return "no address"


@pytest.mark.parametrize("workflow", [pays, hides_the_reason])
def test_without_a_public_address_the_run_is_blocked_and_told_which_setting(workflow: Any) -> None:
    with TestEnvironment(app, services=replace(in_memory(), public_url=None)) as env:
        handle = env.start(workflow)
        env.run_until_idle()
        run = env.get(handle.id)
        assert run.status == "blocked"
        assert "DURABLE_PUBLIC_URL" in str(run.reason)


def test_a_rotated_key_changes_nothing_for_open_runs() -> None:
    before, after = in_memory(), "another secret, made when the first one was a year old"
    with TestEnvironment(app, services=before) as env:
        handle = env.start(pays)
        url = url_of(env, handle.id)
        rotated = TestEnvironment(app, services=replace(before, signing=TextSigning(f"{after}\n{SIGNED_WITH}")))
        rotated.call_webhook(url, {"ok": True})
        assert rotated.result(handle.id) is True
