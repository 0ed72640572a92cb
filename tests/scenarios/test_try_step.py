"""The outcome of a tried step is recorded: replay neither runs it again nor makes another kind of it."""

import pytest

from durable import App, Context, Failed, NonRetryableError, Ok, RollbackError, RunFailed, Step
from durable.testing import TestEnvironment
from tests.scenarios.conftest import World

app = App("tried-steps")


class Declined(Exception):
    pass


def charge() -> str:
    return "paid"


def give_up() -> str:
    raise NonRetryableError("no such card")


def decline() -> str:
    raise Declined("no funds")


def undo_all() -> str:
    raise RollbackError("stop")


@app.workflow
async def outcomes(ctx: Context) -> list[str]:
    seen: list[str] = []
    for name, fn in (("charge", charge), ("give-up", give_up), ("decline", decline)):
        outcome = await ctx.try_step(Step(name, retries=1), fn)
        await ctx.sleep("1h")
        match outcome:
            case Ok(value):
                seen.append(value)
            case Failed(kind, _, attempts, error, source):
                seen.append(f"{source} {kind} {attempts} {error.type} {outcome.matches(Declined)}")
    return seen


@app.workflow
async def rolled_back(ctx: Context) -> str:
    await ctx.try_step(undo_all)
    return "not reached"


@app.workflow
async def keeps_rollback(ctx: Context) -> str:
    outcome = await ctx.try_step(Step(catch=("rollback",)), undo_all)
    return outcome.kind if isinstance(outcome, Failed) else "ok"


def test_a_failure_is_a_value_with_its_kind(world: World) -> None:
    expected = ["paid", "step critical 1 NonRetryableError False", "step exhausted 2 Declined True"]
    assert world(app).start(outcomes, id="r").result() == expected


def test_replay_never_executes_it_again_and_never_changes_its_kind(world: World) -> None:
    env = world(app)
    handle = env.start(outcomes, id="r")
    env.run_until_idle()
    env.mock(charge).raises(Declined("a replay would see this"))
    env.restart()
    assert handle.result()[0] == "paid"


def test_a_rollback_is_let_through_unless_it_is_asked_for(world: World) -> None:
    with pytest.raises(RunFailed, match="stop"):
        world(app).start(rolled_back, id="r").result()
    assert world(app).start(keeps_rollback, id="r").result() == "rollback"


@app.workflow
async def kinds(ctx: Context) -> list[str]:
    """Without the counts: a crash is charged to the attempt that it interrupts."""
    patient = Step(retries=20, no_retry=(Declined,))
    tried = [await ctx.try_step(patient, fn) for fn in (charge, give_up, decline)]
    await ctx.sleep("1h")
    return [outcome.kind if isinstance(outcome, Failed) else outcome.value for outcome in tried]


def test_dying_anywhere_changes_nothing() -> None:
    TestEnvironment(app).run_crash_matrix(kinds)
