"""When a run fails, what its steps did is undone, the latest first, and every outcome is recorded."""

import pytest

from durable import App, Context, NonRetryableError, RollbackError, RunFailed, Step, step_context
from tests.scenarios.conftest import World

app = App("rollback")
done: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()


def book(what: str, *, night: int = 1) -> str:
    done.append(f"book {what}")
    return f"{what}-{night}"


def cancel_booking(booking: str, what: str, *, night: int = 1) -> None:
    done.append(f"cancel {booking} ({what}, {night})")


def refuse() -> None:
    raise NonRetryableError("no room left")


def give_up() -> None:
    raise RollbackError("not worth it")


def note() -> None:
    done.append("note")


BOOK = Step(retries=0).undo(cancel_booking)


@app.workflow
async def trip(ctx: Context) -> None:
    await ctx.step(BOOK, book, "flight")
    await ctx.step(note)
    await ctx.step(BOOK, book, "hotel", night=3)
    await ctx.step(refuse)


@app.workflow
async def changes_its_mind(ctx: Context) -> None:
    await ctx.step(BOOK, book, "flight")
    await ctx.step(give_up)


@app.workflow
async def raises_itself(ctx: Context) -> None:
    await ctx.step(BOOK, book, "flight")
    raise RollbackError("the price went up")


@app.workflow
async def nothing_to_undo(ctx: Context) -> None:
    await ctx.step(note)
    await ctx.step(refuse)


@app.workflow
async def succeeds(ctx: Context) -> str:
    return await ctx.step(BOOK, book, "flight")


@app.workflow
async def handles_it(ctx: Context) -> str:
    await ctx.step(BOOK, book, "flight")
    try:
        await ctx.step(refuse)
    except NonRetryableError:
        await ctx.step(BOOK, book, "train")
    await ctx.sleep("1 day")
    raise ValueError("nobody came")


def test_steps_are_undone_in_reverse_order_with_their_results_and_arguments(world: World) -> None:
    env = world(app)
    handle = env.start(trip, id="r")
    with pytest.raises(RunFailed, match="no room left"):
        handle.result()
    assert done == [
        "book flight", "note", "book hotel", "cancel hotel-3 (hotel, 3)", "cancel flight-1 (flight, 1)",
    ]  # fmt: skip
    run = env.get("r")
    assert run.status == "failed"
    assert run.failed_at == ("refuse",)


def test_the_status_is_rolling_back_until_everything_is_undone(world: World) -> None:
    env = world(app)
    seen: list[str] = []
    env.mock(cancel_booking).runs(lambda *_args, **_kwargs: seen.append(env.get("r").status))
    with pytest.raises(RunFailed):
        env.start(trip, id="r").result()
    assert seen == ["rolling_back", "rolling_back"]
    assert env.repairs == 0


def test_outcomes_are_entries_in_the_order_of_undoing(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(trip, id="r").result()
    history = env.history("r")
    assert [entry.key for entry in history] == ["book", "note", "book#2", "refuse", "book#2!", "book!"]
    assert [entry.fn for entry in history if entry.mark == "!"] == ["cancel_booking", "cancel_booking"]


def test_a_step_that_raises_rollback_error_rolls_back_without_another_attempt(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed, match="not worth it"):
        env.start(changes_its_mind, id="r").result()
    assert done == ["book flight", "cancel flight-1 (flight, 1)"]


def test_a_workflow_that_raises_rollback_error_rolls_back(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed, match="the price went up"):
        env.start(raises_itself, id="r").result()
    assert done == ["book flight", "cancel flight-1 (flight, 1)"]


def test_without_anything_to_undo_the_run_fails_at_once(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed):
        env.start(nothing_to_undo, id="r").result()
    assert env.calls.count("store.acquire") == 1


def test_a_run_that_completes_undoes_nothing(world: World) -> None:
    env = world(app)
    assert env.start(succeeds, id="r").result() == "flight-1"
    env.advance(days=1)
    assert done == ["book flight"]


def test_a_handled_failure_does_not_stop_later_ones_from_being_undone(world: World) -> None:
    env = world(app)
    with pytest.raises(RunFailed, match="nobody came"):
        env.start(handles_it, id="r").result()
    assert done[2:] == ["cancel train-1 (train, 1)", "cancel flight-1 (flight, 1)"]


def test_a_long_error_is_kept_whole_over_the_rollback(world: World) -> None:
    env = world(app)
    text = "no room " * 100
    env.mock(refuse).raises(NonRetryableError(text))
    with pytest.raises(RunFailed):
        env.start(trip, id="r").result()
    run = env.get("r")
    assert run.output_stored
    assert text.strip() in (env.ports.store.get_payload("r", "output", epoch=run.epoch) or "")


def test_step_context_serves_inside_the_undo(world: World) -> None:
    env = world(app)
    contexts = []
    env.mock(cancel_booking).runs(lambda *_args, **_kwargs: contexts.append(step_context()))
    with pytest.raises(RunFailed):
        env.start(raises_itself, id="r").result()
    (context,) = contexts
    assert (context.run_id, context.location, context.attempt) == ("r", "book", 1)
    assert context.idempotency_key
