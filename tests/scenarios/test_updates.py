"""An update is checked before it is stored, taken once, answered once, and its caller learns the answer or why there is none."""

from typing import Any

import pytest

from durable import (
    App,
    Branch,
    Context,
    InvalidInput,
    RunEnded,
    RunNotFound,
    Signal,
    Update,
    UpdateRejected,
    UpdateRequest,
    UpdateTimeout,
    WaitTimeout,
)
from durable.testing import TestEnvironment

RENAME = Update("rename", str, int)
GO = Signal("go", int)
app = App("updated")


@app.workflow
async def naming(ctx: Context) -> list[str]:
    names: list[str] = []
    while len(names) < 2:
        request = await ctx.updates.next(RENAME)
        if request.arg in names:
            request.reject(f"{request.arg} is taken")
            continue
        names.append(request.arg)
        request.respond(len(names))
    return names


@naming.validator(RENAME)
def a_name(name: str) -> None:
    if not name.isalpha():
        raise ValueError("letters only")


@app.workflow
async def thinking(ctx: Context) -> str:
    request = await ctx.updates.next(RENAME)
    await ctx.sleep("1h")
    factor = await ctx.wait_for_signal(GO)
    request.respond(len(request.arg) * factor)
    return request.arg


@app.workflow
async def forgetful(ctx: Context) -> str:
    return (await ctx.updates.next(RENAME)).arg


@app.workflow
async def greedy(ctx: Context) -> None:
    await ctx.updates.next(RENAME)
    await ctx.updates.next(RENAME)


@app.workflow
async def twice(ctx: Context) -> None:
    request = await ctx.updates.next(RENAME)
    request.respond(1)
    request.respond(2)


async def renamed(ctx: Context) -> UpdateRequest[str, int]:
    return await ctx.updates.next(RENAME)


async def stopped(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def racing(ctx: Context) -> str:
    rename = Branch("rename", renamed)
    winner = await ctx.race("either", rename, Branch("stop", stopped))
    if not rename.won(winner):
        return "stopped"
    await ctx.sleep("1h")
    winner.value.respond(7)
    return winner.value.arg


@app.workflow
async def patient(ctx: Context) -> str:
    try:
        await ctx.updates.next(RENAME, timeout="1h")
    except WaitTimeout:
        return "nobody asked"
    return "asked"


def test_the_caller_gets_the_response(world: Any) -> None:
    with world(app) as env:
        handle = env.start(naming)
        assert handle.update(RENAME, "ada") == 1
        with pytest.raises(UpdateRejected, match="ada is taken") as rejected:
            handle.update(RENAME, "ada")
        assert rejected.value.reason == "ada is taken"
        assert env.update(handle.id, "rename", "grace") == 2
        assert handle.result() == ["ada", "grace"]


def test_a_refused_update_leaves_the_run_untouched(world: Any) -> None:
    with world(app) as env:
        handle = env.start(naming)
        env.run_until_idle()
        before = env.get(handle.id)
        with pytest.raises(UpdateRejected, match="letters only"):
            handle.update(RENAME, "r2d2")
        with pytest.raises(UpdateRejected, match="letters only"):
            handle.update("rename", "r2d2")
        with pytest.raises(InvalidInput, match='argument of update "rename"'):
            handle.update("rename", 3)
        env.run_until_idle()
        assert env.get(handle.id) == before


def test_an_update_that_is_not_answered_is_handed_out_again_on_replay(world: Any) -> None:
    with world(app) as env:
        handle = env.start(thinking)
        update = handle.send_update(RENAME, "abc", id="u-1")
        env.run_until_idle()
        env.restart()
        env.advance(hours=2)
        with pytest.raises(UpdateTimeout, match="stays accepted"):
            update.result(timeout=0)
        env.restart()
        handle.send(GO, 5)
        assert update.result(timeout="1m") == 15
        assert env.update_handle(handle.id, RENAME, "u-1").result() == 15
        assert handle.result() == "abc"


def test_the_same_id_is_taken_once_and_has_one_answer() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(naming)
        assert [handle.update(RENAME, "ada", id="u-1") for _ in range(2)] == [1, 1]
        assert handle.update(RENAME, "grace") == 2


def test_an_update_to_a_run_that_ends_without_an_answer_raises_run_ended() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(forgetful)
        with pytest.raises(RunEnded, match="completed"):
            handle.update(RENAME, "ada")
        with pytest.raises(RunEnded):
            handle.send_update(RENAME, "grace")
        with pytest.raises(RunNotFound):
            env.update("nobody", RENAME, "x")


@pytest.mark.parametrize(
    ("workflow", "message"), [(greedy, "has been taken and not answered"), (twice, "is answered twice")]
)
def test_misuse_of_updates_blocks_the_run(workflow: Any, message: str) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(workflow)
        handle.send_update(RENAME, "a")
        handle.send_update(RENAME, "b")
        env.run_until_idle()
        run = env.get(handle.id)
        assert run.status == "blocked"
        assert message in str(run.reason)


def test_a_request_that_won_a_race_is_answered_after_it() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(racing)
        update = handle.send_update(RENAME, "ada")
        env.run_until_idle()
        env.restart()
        assert handle.result() == "ada"
        assert update.result() == 7


def test_a_wait_for_an_update_has_a_deadline() -> None:
    with TestEnvironment(app) as env:
        assert env.start(patient).result() == "nobody asked"


def test_an_update_is_no_signal_and_waits_for_the_run_to_ask() -> None:
    any_signal = App("signals")

    @any_signal.workflow
    async def listening(ctx: Context) -> str:
        message = await ctx.mailbox.next_any(timeout="1h")
        request = await ctx.updates.next(RENAME)
        request.respond(0)
        return message.name

    with TestEnvironment(any_signal) as env:
        handle = env.start(listening)
        update = handle.send_update(RENAME, "x")
        env.run_until_idle()
        handle.send(GO, 1)
        assert handle.result() == "go"
        assert update.result() == 0


def test_branches_take_updates_side_by_side() -> None:
    desks = App("desks")

    async def serve(ctx: Context, desk: int) -> str:
        request = await ctx.updates.next(RENAME)
        await ctx.sleep(60 * (desk + 1))
        request.respond(desk)
        second = await ctx.updates.next(RENAME)
        second.respond(10 + desk)
        return f"{request.arg}{second.arg}"

    @desks.workflow
    async def office(ctx: Context) -> list[str]:
        return await ctx.map("desks", [0, 1], serve)

    with TestEnvironment(desks) as env:
        handle = env.start(office)
        updates = [handle.send_update(RENAME, name) for name in "abcd"]
        assert handle.result() == ["ac", "bd"]
        assert [update.result() for update in updates] == [0, 1, 10, 11]
