"""Undos are retried, suspend between attempts, survive crashes, and one that fails for good does not stop the others."""

import asyncio
from typing import Any

import pytest

from durable import App, Context, NonRetryableError, NotStorable, RollbackError, RunBlocked, RunFailed, Step
from durable.testing import TestEnvironment, kill_process
from tests.scenarios.conftest import World

app = App("rollback-troubles")


class Unavailable(Exception):
    pass


def book(what: str) -> str:
    return what


def unbook(result: str, what: str) -> None:
    """Cancels the booking."""


def pay(amount: int) -> int:
    return amount


def refund(receipt: int, amount: int) -> None:
    """Gives the money back."""


def refuse() -> None:
    raise NonRetryableError("no")


def send(what: object) -> None:
    """Takes what cannot be stored."""


def recall(result: None, what: object) -> None:
    """Undoes `send`."""


@app.workflow
async def trip(ctx: Context) -> None:
    await ctx.step(Step().undo(unbook), book, "hotel")
    await ctx.step(Step().undo(refund), pay, 100)
    await ctx.step(refuse)


@app.workflow
async def abandoned(ctx: Context) -> None:
    await ctx.step(Step(retries=20).undo(unbook), book, "hotel")
    await ctx.sleep("1h")
    await ctx.step(Step(retries=20).undo(refund), pay, 100)
    raise RollbackError("too dear")


@app.workflow
async def siblings(ctx: Context) -> None:
    async def abandon() -> None:
        await ctx.step(Step("look", retries=20), book, "nothing")
        raise RollbackError("too dear")

    hotels = (ctx.step(Step(f"hotel-{n}", retries=20).undo(unbook), book, f"hotel-{n}") for n in range(3))
    await asyncio.gather(*hotels, abandon())


@app.workflow
async def with_checkpoint(ctx: Context) -> None:
    await ctx.step(Step("first").undo(unbook), book, "hotel")
    await ctx.rollback_checkpoint("shipped")
    await ctx.step(Step("second").undo(unbook), book, "train")
    await ctx.step(refuse)


@app.workflow
async def checkpoint_at_the_end(ctx: Context) -> None:
    await ctx.step(Step().undo(unbook), book, "hotel")
    await ctx.rollback_checkpoint("shipped")
    await ctx.step(refuse)


@app.workflow
async def local_undo(ctx: Context) -> None:
    await ctx.step(Step().undo(lambda result, what: None), book, "hotel")


@app.workflow
async def unstorable(ctx: Context) -> None:
    await ctx.step(Step().undo(recall), send, object())


def failing(env: TestEnvironment) -> None:
    with pytest.raises(RunFailed, match="no"):
        env.start(trip, id="r").result()


def test_a_failing_undo_is_tried_again_with_its_backoff(world: World) -> None:
    env = world(app)
    undo = env.mock(refund).raises(Unavailable("busy")).raises(Unavailable("busy")).returns(None)
    failing(env)
    assert len(undo.calls) == 3
    assert [entry.key for entry in env.history("r")][3:] == ["pay!@1", "pay!@2", "pay!", "book!"]


def test_an_undo_that_fails_for_good_is_named_and_the_others_are_done_all_the_same(world: World) -> None:
    env = world(app)
    refunds = env.mock(refund).raises(Unavailable("closed"))
    unbooking = env.mock(unbook).returns(None)
    failing(env)
    assert len(refunds.calls) == 6
    assert len(unbooking.calls) == 1
    run = env.get("r")
    assert run.status == "failed"
    assert run.reason is not None
    assert run.reason.endswith("NOT UNDONE, see to it by hand: pay")
    assert env.repairs == 0


def test_an_undo_suspends_between_attempts(world: World) -> None:
    env = world(app)
    env.mock(refund).raises(Unavailable("busy"))
    env.start(trip, id="r")
    env.run_until_idle()
    run = env.get("r")
    assert run.status == "rolling_back"
    assert run.due_at is not None
    assert run.due_at > env.now.timestamp()
    assert run.lease_owner is None


def test_an_undo_that_kills_its_process_runs_out_of_attempts_and_the_others_are_done(world: World) -> None:
    env = world(app)
    env.mock(refund).runs(lambda *_: kill_process())
    unbooking = env.mock(unbook).returns(None)
    failing(env)
    assert len(unbooking.calls) == 1
    assert "pay" in (env.get("r").reason or "")


def test_dying_anywhere_undoes_every_step_and_goes_on_where_it_was(world: World) -> None:
    env = world(app)
    env.mock(refund).raises(Unavailable("busy")).returns(None)
    matrix = env.run_crash_matrix(abandoned)
    assert len(matrix.calls) > 12


def test_dying_anywhere_beside_running_siblings_undoes_them_too(world: World) -> None:
    env = world(app)
    assert len(env.run_crash_matrix(siblings).calls) > 12


@pytest.mark.parametrize("workflow", [trip, abandoned, siblings], ids=lambda workflow: workflow.name)
@pytest.mark.parametrize("after", [False, True])
def test_wherever_it_dies_every_step_is_undone_and_none_twice(world: World, workflow: Any, after: bool) -> None:
    for n in range(1, 45):
        env = world(app)
        refunds, unbooking = env.mock(refund).returns(None), env.mock(unbook).returns(None)
        env.crash_at(n, after=after)
        with pytest.raises(RunFailed):
            env.start(workflow, id="r").result()
        history = env.history("r")
        steps = [entry.location for entry in history if entry.compensation is not None]
        assert [entry.location for entry in history if entry.mark == "!"] == steps[::-1]
        assert len(refunds.calls) + len(unbooking.calls) <= len(steps) + 1  # the one that was under way


def test_a_checkpoint_limits_how_far_back_a_rollback_goes(world: World) -> None:
    env = world(app)
    unbooking = env.mock(unbook).returns(None)
    with pytest.raises(RunFailed):
        env.start(with_checkpoint, id="r").result()
    assert unbooking.calls == [(("train", "train"), {})]


def test_with_everything_before_the_checkpoint_nothing_is_undone(world: World) -> None:
    env = world(app)
    unbooking = env.mock(unbook).returns(None)
    with pytest.raises(RunFailed):
        env.start(checkpoint_at_the_end, id="r").result()
    assert unbooking.calls == []


def test_an_undo_that_is_no_function_of_a_module_is_refused_at_the_call(world: World) -> None:
    env = world(app)
    booking = env.mock(book).returns("hotel")
    with pytest.raises(RunFailed, match="takes a function of a module"):
        env.start(local_undo, id="r").result()
    assert booking.calls == []


def test_arguments_that_cannot_be_stored_fail_the_step_before_it_runs(world: World) -> None:
    env = world(app)
    sending = env.mock(send).returns(None)
    with pytest.raises(RunFailed, match=r"argument 1 of recall cannot be stored"):
        env.start(unstorable, id="r").result()
    assert sending.calls == []
    error = env.history("r")[0].error
    assert error is not None
    assert error.matches(NotStorable)


def test_an_undo_that_is_gone_blocks_the_rollback_and_new_code_lets_it_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_and_forget() -> None:
        monkeypatch.delattr(f"{__name__}.refund")
        raise NonRetryableError("no")

    env = world(app)
    env.mock(refuse).runs(refuse_and_forget)
    unbooking = env.mock(unbook).returns(None)
    with pytest.raises(RunBlocked, match="which the deployed code does not have"):
        env.start(trip, id="r").result()
    assert env.get("r").ending == "failed"
    monkeypatch.undo()
    env.deploy(app)
    with pytest.raises(RunFailed, match="no"):
        env.handle(trip, "r").result()
    assert len(unbooking.calls) == 1


def test_misuse_and_divergence_never_roll_back(world: World) -> None:
    broken = App("rollback-troubles")

    @broken.workflow
    async def misused(ctx: Context) -> None:
        await ctx.step(Step("a").undo(unbook), book, "hotel")
        await ctx.step("a", book, "hotel")

    env = world(broken)
    unbooking = env.mock(unbook).returns(None)
    with pytest.raises(RunBlocked, match="used twice"):
        env.start(misused, id="r").result()
    assert unbooking.calls == []
    assert env.get("r").status == "blocked"
