"""Replay is a function: history in, commands out."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from durable.errors import Diverged, StepFailed, UndecodableHistory
from durable.execution import Raised, Returned
from durable.journal import name_waits
from durable.model.entry import Entry
from durable.ops.operation import WaitOperation
from durable.values import Break, Continue, Winner
from tests.properties.replays import check_replays, play, replayed
from tests.properties.virtual_engine import STARTED_AT, Ctx, Opened, Workflow, message, open_run


def plus_one(x: int) -> int:
    return x + 1


def times_two(x: int) -> int:
    return x * 2


def text(x: int) -> str:
    return str(x)


def recorded(workflow: Workflow, *mail: Any) -> list[Entry]:
    """The history of a run that was never interrupted."""
    return play(workflow, mail=mail, suspend=0.0)[1].store.valid()


async def original(ctx: Ctx) -> Any:
    await ctx.step("a", plus_one, 1)
    await ctx.step("b", plus_one, 2)
    await ctx.sleep(5, "nap")
    return await ctx.step("c", plus_one, 3)


async def inserted(ctx: Ctx) -> Any:
    await ctx.step("a", plus_one, 1)
    await ctx.step("new", plus_one, 9)
    await ctx.step("b", plus_one, 2)
    await ctx.sleep(5, "nap")
    return await ctx.step("c", plus_one, 3)


async def removed(ctx: Ctx) -> Any:
    await ctx.step("a", plus_one, 1)
    await ctx.sleep(5, "nap")
    return await ctx.step("c", plus_one, 3)


async def swapped(ctx: Ctx) -> Any:
    await ctx.step("b", plus_one, 2)
    await ctx.step("a", plus_one, 1)
    await ctx.sleep(5, "nap")
    return await ctx.step("c", plus_one, 3)


async def other_function(ctx: Ctx) -> Any:
    await ctx.step("a", times_two, 1)
    await ctx.step("b", plus_one, 2)
    await ctx.sleep(5, "nap")
    return await ctx.step("c", plus_one, 3)


async def other_kind(ctx: Ctx) -> Any:
    await ctx.step("a", plus_one, 1)
    await ctx.sleep(1, "b")
    await ctx.sleep(5, "nap")
    return await ctx.step("c", plus_one, 3)


async def early_return(ctx: Ctx) -> Any:
    await ctx.step("a", plus_one, 1)
    return 1


async def early_error(ctx: Ctx) -> Any:
    await ctx.step("a", plus_one, 1)
    raise ValueError("early")


async def swallows_divergence(ctx: Ctx) -> Any:
    try:
        await ctx.step("a", times_two, 1)
    except BaseException:  # noqa: BLE001  that is the fault
        return 7
    return 8


CHANGES = [inserted, removed, swapped, other_function, other_kind, early_return, early_error, swallows_divergence]


@pytest.mark.parametrize("changed", CHANGES, ids=lambda workflow: workflow.__name__)
def test_changed_code_diverges_and_nothing_new_is_handed_out(changed: Workflow) -> None:
    opened = open_run(changed, recorded(original))
    with pytest.raises(Diverged):
        opened.execution.advance()
    assert not opened.execution.live
    opened.execution.unwind()


async def renamed(ctx: Ctx) -> Any:
    await ctx.step("a", plus_one, 1)
    return await ctx.step("bee", plus_one, 2)


def test_a_divergence_says_what_is_recorded_what_is_asked_for_and_what_to_do() -> None:
    with pytest.raises(Diverged) as raised:
        replayed(renamed, recorded(original)[:2])
    text = str(raised.value)
    assert 'the history of run run-1 (under_test 1): the next result is that of step "b", which is not called' in text
    assert 'Recorded and not reached: step "b".' in text
    assert 'The code asks for: step "bee" (renamed?).' in text
    assert "Nothing new was run. Deploy the code as it was, give operations their recorded names, " in text
    assert "ctx.get_version(...)" in text


async def appended(ctx: Ctx) -> Any:
    await original(ctx)
    return await ctx.step("d", plus_one, 3)


async def gathered(ctx: Ctx) -> Any:
    await asyncio.gather(ctx.step("a", plus_one, 1), ctx.step("b", plus_one, 2))
    await ctx.sleep(5, "nap")
    return await ctx.step("c", plus_one, 3)


def test_code_may_be_added_after_what_the_run_has_done() -> None:
    assert replayed(appended, recorded(original)).pending == ["d"]


def test_harmless_rearrangement_is_accepted() -> None:
    assert replayed(gathered, recorded(original)).result == "returned 4"


def test_a_finished_run_is_replayed_without_a_command() -> None:
    opened = open_run(original, recorded(original))
    opened.execution.advance()
    assert opened.execution.take() == []
    assert opened.execution.outcome == Returned(4)
    assert opened.execution.live


def test_time_is_that_of_the_latest_delivered_entry() -> None:
    history = recorded(original)
    opened = open_run(original, history[:3])
    assert opened.execution.time == STARTED_AT
    opened.execution.advance()
    assert opened.execution.time == history[2].at
    opened.execution.unwind()


def test_logs_are_silent_until_everything_recorded_is_delivered() -> None:
    seen: list[bool] = []

    async def workflow(ctx: Ctx) -> Any:
        seen.append(ctx.execution.replaying)
        await ctx.step("a", plus_one, 1)
        seen.append(ctx.execution.replaying)
        await ctx.step("b", plus_one, 1)
        seen.append(ctx.execution.replaying)

    history = recorded(workflow)
    assert seen == [False, False, False]
    seen.clear()
    opened = open_run(workflow, history[:1])
    opened.execution.advance()
    opened.execution.deliver(history[1])
    assert seen == [True, True, False]


def test_a_value_that_no_longer_fits_its_type_blocks_the_run_even_if_it_is_caught() -> None:
    async def workflow(ctx: Ctx) -> Any:
        try:
            return await ctx.step("a", plus_one, 1)
        except Exception:  # noqa: BLE001  that is the fault
            return "swallowed"

    entry = replace(recorded(workflow)[0], value='"one"')
    for slow in (False, True):
        with pytest.raises(UndecodableHistory, match='recorded at "a" cannot be read as int'):
            replayed(workflow, [entry], slow=slow)


def test_a_failure_is_the_same_live_and_replayed() -> None:
    def charge(x: int) -> int:
        raise LookupError(f"no card {x}")

    async def workflow(ctx: Ctx) -> Any:
        try:
            await ctx.step(charge, 1)
        except LookupError as error:
            return type(error).__name__, isinstance(error, StepFailed), str(error)

    assert len(check_replays(workflow)) == 1


def test_an_unhandled_error_is_the_outcome() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await ctx.step("a", plus_one, 1)
        raise ValueError("mine")

    opened = open_run(workflow, recorded(workflow))
    opened.execution.advance()
    outcome = opened.execution.outcome
    assert isinstance(outcome, Raised)
    assert repr(outcome.exception) == "ValueError('mine')"


# Late results


async def cancels_a_step(ctx: Ctx) -> Any:
    try:
        async with asyncio.timeout(0.001):
            await asyncio.gather(*(ctx.step(plus_one, x) for x in range(4)))
    except TimeoutError:
        return await ctx.step("after", plus_one, 2)


def test_a_late_result_of_a_cancelled_step_is_skipped_live_and_replayed() -> None:
    skipped = 0
    for seed in range(20):
        _, engine = play(cancels_a_step, seed)
        skipped += len(replayed(cancels_a_step, engine.store.valid()).execution.skipped)
    assert skipped > 0
    check_replays(cancels_a_step)


# Attempts


def attempt_of(entry: Entry, number: int) -> Entry:
    return replace(entry, mark=f"@{number}", value=None, n=1)


def test_attempts_are_handed_to_their_step_and_the_step_is_performed_again() -> None:
    step = recorded(original)[0]
    opened = open_run(original, [attempt_of(step, 2), attempt_of(step, 1)])
    opened.execution.advance()
    [operation] = opened.execution.take()
    assert [attempt.mark for attempt in operation.attempts] == ["@1", "@2"]  # type: ignore[attr-defined]
    opened.execution.deliver(attempt_of(step, 3))
    assert [attempt.mark for attempt in operation.attempts] == ["@1", "@2", "@3"]  # type: ignore[attr-defined]
    opened.execution.unwind()


def test_an_attempt_that_no_step_claims_diverges() -> None:
    with pytest.raises(Diverged, match='Recorded and not reached: step "a"'):
        replayed(renamed_first, [attempt_of(recorded(original)[0], 1)])


async def renamed_first(ctx: Ctx) -> Any:
    return await ctx.step("first", plus_one, 1)


def test_an_attempt_of_another_function_diverges() -> None:
    with pytest.raises(Diverged, match="the history has a step of plus_one, the code has a step of times_two"):
        replayed(other_function, [attempt_of(recorded(original)[0], 1)])


# Waits that a settled run names


def suspend_on(workflow: Workflow) -> tuple[Any, str | None]:
    opened = open_run(workflow)
    opened.execution.advance()
    waiting = [op for op in opened.execution.take() if isinstance(op, WaitOperation)]
    opened.execution.unwind()
    return name_waits(waiting)


def resumed(workflow: Workflow, suspended: Workflow, history: tuple[Entry, ...] = ()) -> Opened:
    waits, digest = suspend_on(suspended)
    opened = open_run(workflow, history, waits=waits, waits_digest=digest)
    try:
        opened.execution.advance()
    finally:
        opened.waits = opened.execution.take()  # type: ignore[attr-defined]
        opened.execution.unwind()
    return opened


def naps(*seconds: float, names: str = "abcdefghijklmnop") -> Workflow:
    async def workflow(ctx: Ctx) -> Any:
        await asyncio.gather(*(ctx.sleep(s, name) for s, name in zip(seconds, names, strict=False)))

    return workflow


def test_a_wait_that_the_code_has_lost_diverges() -> None:
    with pytest.raises(Diverged, match="waits for something that the code does not wait for any more"):
        resumed(naps(5), naps(5, 6))


def test_a_wait_that_the_workflow_leaves_behind_at_its_end_diverges() -> None:
    async def ends(_: Ctx) -> int:
        return 1

    with pytest.raises(Diverged, match="waits for something"):
        resumed(ends, naps(5))


def test_a_recorded_deadline_stands() -> None:
    opened = resumed(naps(50), naps(5))
    assert [op.deadline for op in opened.waits] == [STARTED_AT + 5]  # type: ignore[attr-defined]


def test_a_wait_may_be_added() -> None:
    assert len(resumed(naps(5, 6), naps(5)).waits) == 2  # type: ignore[attr-defined]


def test_waits_beyond_those_that_are_named_are_checked_together() -> None:
    many = naps(*range(1, 13))
    assert suspend_on(many)[1] is not None
    resumed(many, many)
    resumed(naps(*range(1, 14)), many)
    with pytest.raises(Diverged, match="4 more operations"):
        resumed(naps(*range(1, 13), names="abcdefghijkX"), many)


def test_further_waits_are_checked_as_of_the_settle_when_a_later_turn_died() -> None:
    many = naps(*range(1, 13))
    resolved = [entry for entry in recorded(many) if entry.location in {"a", "k"}]
    assert len(resumed(many, many, tuple(resolved)).waits) == 10  # type: ignore[attr-defined]
    with pytest.raises(Diverged, match="4 more operations"):
        resumed(naps(*range(1, 13), names="abcdefghijkX"), many, tuple(resolved))


def test_a_wait_that_new_code_cancels_before_its_recorded_end_diverges() -> None:
    async def patient(ctx: Ctx) -> Any:
        task = asyncio.create_task(ctx.sleep(5, "nap"))
        await ctx.step("a", plus_one, 1)
        await task

    async def impatient(ctx: Ctx) -> Any:
        task = asyncio.create_task(ctx.sleep(5, "nap"))
        await ctx.step("a", plus_one, 1)
        task.cancel()
        await ctx.step("b", plus_one, 1)

    async def hasty(ctx: Ctx) -> Any:
        task = asyncio.create_task(ctx.sleep(5, "nap"))
        await ctx.step("a", plus_one, 1)
        return task.done()

    history = recorded(patient)
    with pytest.raises(Diverged, match='the code cancels sleep "nap" before its recorded result'):
        replayed(impatient, history)
    with pytest.raises(Diverged, match='the workflow ends before the recorded result of "nap"'):
        replayed(hasty, history)


def test_a_named_wait_that_was_resolved_in_a_turn_that_died_is_claimed_by_its_entry() -> None:
    entry = recorded(naps(5))[0]
    opened = resumed(naps(5), naps(5), (entry,))
    assert opened.result == "returned None"


def test_a_named_wait_inside_iterations_that_are_over_is_excused() -> None:
    async def loops(ctx: Ctx) -> Any:
        async def body(ctx: Ctx, state: int) -> Any:
            await ctx.race(
                "either", {"nap": lambda ctx: ctx.sleep(100), "quick": lambda ctx: ctx.step(plus_one, state)}
            )
            return Continue(state + 1)

        await ctx.loop("poll", body, 0, history=1)

    async def first_iteration(ctx: Ctx) -> Any:
        async def body(ctx: Ctx) -> None:
            await ctx.race("either", {"nap": lambda ctx: ctx.sleep(100), "quick": lambda ctx: ctx.sleep(200)})

        await ctx.loop("poll", body)

    progress = Entry(location="poll", mark="~1", kind="loop", epoch=1, n=1, at=STARTED_AT, value="1")
    assert resumed(loops, first_iteration, (progress,)).execution.live


# Branches


def test_branches_added_to_or_removed_from_recorded_blocks_diverge() -> None:
    async def works(ctx: Ctx) -> int:
        return await ctx.step(plus_one, 1)

    async def naps_long(ctx: Ctx) -> int:
        await ctx.sleep(100)
        return 0

    def racing(*keys: str) -> Workflow:
        branches = {"works": works, "naps": naps_long, "more": naps_long}

        async def workflow(ctx: Ctx) -> Any:
            return await ctx.race("race", {key: branches[key] for key in keys})

        return workflow

    history = recorded(racing("works", "naps"))
    assert replayed(racing("works", "naps"), history).result == f"returned {Winner('works', 2)!r}"
    for changed in (racing("works", "naps", "more"), racing("works")):
        with pytest.raises(Diverged, match="inside branches works,naps"):
            replayed(changed, history)


def test_a_changed_join_is_noticed_by_operations_in_scopes_inside_its_branches() -> None:
    async def body(ctx: Ctx, state: int) -> Any:
        return Break(await ctx.step(plus_one, state))

    def joining(*keys: str) -> Workflow:
        async def branch(ctx: Ctx) -> Any:
            return await ctx.loop("poll", body, 1)

        async def workflow(ctx: Ctx) -> Any:
            return await ctx.join("all", dict.fromkeys(keys, branch))

        return workflow

    history = [entry for entry in recorded(joining("a", "b")) if entry.location == "all/a/poll[0]/plus_one"]
    with pytest.raises(Diverged, match="inside branches a,b"):
        replayed(joining("a"), history)


# Messages


def test_a_message_that_was_put_early_is_received_by_a_late_turn() -> None:
    async def workflow(ctx: Ctx) -> Any:
        await ctx.sleep(100)
        return await ctx.next("go", timeout=0, default="nothing")

    assert check_replays(workflow, mail=[message("m1", "go", "hello", after=3.0)]) == {"returned 'hello'"}
    assert check_replays(workflow) == {"returned 'nothing'"}
