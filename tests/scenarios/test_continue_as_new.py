"""A run goes on as a fresh one of its lineage, both or neither; who holds an older id is led to the last."""

import asyncio

import pytest

from durable import (
    App,
    Branch,
    Context,
    InvalidInput,
    RunBlocked,
    RunEnded,
    RunFailed,
    RunTimedOut,
    RunWasCancelled,
    Signal,
    StateKey,
    Update,
)
from tests.scenarios.conftest import World

GO = Signal("go", int)
RENAME = Update("rename", str, int)
PROGRESS = StateKey("progress", int)
app = App("continuing")
elsewhere = App("elsewhere")


def work(n: int) -> int:
    return n * n


@app.workflow(tags=["shop"])
async def counting(ctx: Context, n: int) -> tuple[int, str, str | None, tuple[str, ...]]:
    ctx.set_state(PROGRESS, n)
    ctx.set_attributes(round=n)
    if n == 1:
        ctx.add_tags("begun")
    squared = await ctx.step(work, n)
    if n < 4:
        await ctx.continue_as_new(counting, n + 1)
    return squared, ctx.run.id, ctx.run.lineage, ctx.run.tags


@app.workflow
async def patient(ctx: Context, n: int) -> int:
    body = await ctx.wait_for_signal(GO)
    if n == 3:
        return body
    return await ctx.continue_as_new(patient, n + 1)


@app.workflow
async def drowsy(ctx: Context, n: int) -> int:
    async def hears(ctx: Context) -> int:
        return await ctx.wait_for_signal(GO)

    async def naps(ctx: Context) -> int:
        await ctx.sleep("5h")
        return -1

    heard, napped = Branch("hears", hears), Branch("naps", naps)
    await ctx.race("next", heard, napped)
    if n == 4:
        return await ctx.wait_for_signal(GO)
    return await ctx.continue_as_new(drowsy, n + 1)


@app.workflow(timeout="3h")
async def hasty(ctx: Context, n: int) -> int:
    await ctx.sleep("1h")
    return await ctx.continue_as_new(hasty, n + 1)


@app.workflow
async def mistaken(ctx: Context) -> str:
    try:
        await ctx.continue_as_new(counting, "many")  # type: ignore[arg-type]
    except InvalidInput as error:
        return error.reason


@elsewhere.workflow
async def unknown(ctx: Context) -> None:
    pass


@app.workflow
async def astray(ctx: Context) -> None:
    return await ctx.continue_as_new(unknown)


@app.workflow
async def busy(ctx: Context, n: int) -> int:
    if n:
        return n

    async def hears() -> int:
        return await ctx.wait_for_signal(GO)

    listener = asyncio.create_task(hears())
    await ctx.sleep("1m")
    assert not listener.done()
    return await ctx.continue_as_new(busy, 1)


@app.workflow
async def lengthy(ctx: Context, text: str) -> int:
    if len(text) > 10_000:
        return len(text)
    return await ctx.continue_as_new(lengthy, text * 100)


@app.workflow
async def asked(ctx: Context, n: int) -> int:
    if n == 0:
        await ctx.sleep("1h")
        await ctx.continue_as_new(asked, 1)
    request = await ctx.updates.next(RENAME)
    request.respond(len(request.arg))
    return n


@app.workflow
async def rude(ctx: Context) -> None:
    await ctx.updates.next(RENAME)
    return await ctx.continue_as_new(rude)


@app.workflow
async def tidy(ctx: Context, n: int) -> str:
    try:
        await ctx.sleep("1h")
    except asyncio.CancelledError:
        await ctx.step("clean", work, n)
        raise
    return await ctx.continue_as_new(tidy, n + 1)


@app.workflow
async def failing(ctx: Context, n: int) -> None:
    if n == 2:
        raise ValueError("the end")
    return await ctx.continue_as_new(failing, n + 1)


def test_result_tags_attributes_and_state_are_those_of_the_last(world: World) -> None:
    env = world(app)
    handle = env.start(counting, 1, id="r")
    assert handle.result() == (16, "r~4", "r", ("shop", "begun"))
    run = env.get("r")
    assert (run.id, run.lineage, run.attributes) == ("r~4", "r", {"round": 4})
    assert handle.get_state(PROGRESS) == 4
    first = env.ports.store.get("r")
    assert first is not None
    assert (first.status, first.successor, first.output, first.undelivered) == ("completed", "r~2", None, 0)
    assert [entry.location for entry in env.history("r")] == ["work"]
    assert env.repairs == 0


def test_start_again_gives_the_lineage(world: World) -> None:
    env = world(app)
    env.start(counting, 1, id="r").result()
    assert env.start(counting, 1, id="r").result()[1] == "r~4"


def test_tmr_06_timers_of_older_lives_are_harmless(world: World) -> None:
    env = world(app)
    handle = env.start(drowsy, 1, id="r")
    for n in range(4):
        env.advance(minutes=1)
        handle.send(GO, n)
    env.run_until_idle()
    before = [env.history(run) for run in ("r", "r~2", "r~3", "r~4")]
    env.advance(hours=30)
    assert [env.history(run) for run in ("r", "r~2", "r~3", "r~4")] == before
    handle.send(GO, 9)
    assert handle.result() == 9
    assert env.repairs == 0


def test_older_ids_lead_to_the_last_and_end_with_it(world: World) -> None:
    env = world(app)
    env.start(patient, 1, id="r")
    env.send("r", GO, 1)
    env.run_until_idle()
    assert env.get("r").id == env.get("r~2").id == "r~2"
    env.send("r", GO, 2)
    env.run_until_idle()
    assert env.get("r").waiting_for == ("signal:go",)
    env.send("r~2", GO, 3)
    assert env.result("r") == env.result("r~2") == env.result("r~3") == 3
    with pytest.raises(RunEnded):
        env.send("r", GO, 4)
    with pytest.raises(RunEnded):
        env.cancel("r~2")


def test_the_deadline_is_that_of_the_lineage(world: World) -> None:
    env = world(app)
    began = env.now
    with pytest.raises(RunTimedOut):
        env.start(hasty, 1, id="r").result()
    assert (env.now - began).total_seconds() == pytest.approx(3 * 3600, abs=90)


def test_an_input_that_does_not_fit_is_an_error_in_the_code(world: World) -> None:
    env = world(app)
    assert "int" in env.start(mistaken, id="r").result()
    assert env.ports.store.get("r~2") is None


def test_a_workflow_that_is_not_deployed_blocks_the_run(world: World) -> None:
    env = world(app)
    with pytest.raises(RunBlocked, match="unknown"):
        env.start(astray, id="r").result()
    assert env.ports.store.get("r~2") is None


def test_what_other_tasks_wait_for_is_given_up(world: World) -> None:
    env = world(app)
    assert env.start(busy, 0, id="r").result() == 1


def test_a_large_input_is_stored_apart(world: World) -> None:
    env = world(app)
    assert env.start(lengthy, "x" * 200, id="r").result() == 20_000


def test_an_update_to_an_older_life_is_answered_by_a_later_one(world: World) -> None:
    env = world(app)
    handle = env.start(asked, 0, id="r")
    env.run_until_idle()
    early = handle.send_update(RENAME, "abc")
    assert early.result(timeout="2h") == 3
    assert handle.result() == 1


def test_an_update_that_was_taken_must_be_answered_first(world: World) -> None:
    env = world(app)
    handle = env.start(rude, id="r")
    handle.send_update(RENAME, "abc")
    with pytest.raises(RunBlocked, match="not answered"):
        handle.result()


def test_cancelling_an_older_id_cancels_the_last(world: World) -> None:
    env = world(app)
    handle = env.start(tidy, 1, id="r")
    env.advance(minutes=90)
    handle.cancel()
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert [entry.location for entry in env.history("r~2")] == ["cancel", "clean"]
    other = env.start(tidy, 1, id="s")
    env.advance(minutes=90)
    env.terminate("s")
    with pytest.raises(RunWasCancelled):
        other.result()
    assert env.get("s").id == "s~2"


def test_a_cancellation_that_comes_at_the_turn_over_is_not_lost(world: World) -> None:
    clean = world(app)
    clean.start(tidy, 1, id="r")
    clean.advance(minutes=59)
    before = len(clean.calls)
    clean.advance(minutes=2)
    at = clean.calls.index("store.continue_as_new", before) + 1 - before
    for number in range(at - 3, at + 3):
        env = world(app)
        handle = env.start(tidy, 1, id="r")
        env.advance(minutes=59)
        env.faults.freeze(0, at=number)
        env.world.faults.pass_time = lambda _, handle=handle: handle.cancel()
        env.advance(minutes=2)
        env.run_until_idle()
        with pytest.raises(RunWasCancelled):
            handle.result()


def test_the_failure_of_the_last_is_that_of_the_lineage(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed, match="the end"):
        env.start(failing, 1, id="r").result()


def test_a_lost_start_is_found_by_maintenance(world: World) -> None:
    env = world(app)
    env.faults.fail_next_call("runs.send")
    assert env.start(counting, 3, id="r").result()[1] == "r~2"
    assert env.repairs == 1
