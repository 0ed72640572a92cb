"""Remote steps that fail, hang, fall silent, are not wanted any more, and whose results come late or twice."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random  # noqa: TID251 - handed in, seeded
from typing import TYPE_CHECKING

from durable.context import Branch, Context
from durable.model.call import attempt_of, task_id_of
from durable.model.task import lane_holder
from durable.options import Backoff, Call
from durable.step_context import step_context
from durable.testing.simulation.quiet import check_all_ended
from durable.testing.simulation.script import Act
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import Flaky, app, effects
from durable.testing.simulation.workloads.workload import Ending, Plan, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.client import Client
    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.testing.simulation.seams import PortCall
    from durable.testing.simulation.watch import Watch


@dataclass(frozen=True, slots=True)
class Work:
    """What a remote step does at its first attempt; it succeeds at once at any later one."""

    takes: float = 0.0
    beats: bool = True
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What it gives: which attempt that was."""

    attempt: int


@app.remote_step(queue="plain", retries=50)
def work(what: Work) -> Done:
    """Takes its time, fails, or both."""
    return perform(what)


def perform(what: Work) -> Done:
    """The body of every remote step."""
    context = step_context()
    with effects.body() as task:
        effects.bodies[task.holder] += 1
        for _ in range(4 if what.takes and context.attempt == 1 else 0):
            effects.sleep(what.takes / 4)
            if what.beats:
                context.heartbeat()
        if what.fails and context.attempt == 1:
            raise Flaky
        return Done(context.attempt)


LOSER = "first/called/call-20"
SOON = Backoff(2.0, factor=1)


@app.workflow
async def remote(ctx: Context, seconds: float) -> list[int]:
    """Calls of every kind; the output tells which attempt has counted."""

    async def call(ctx: Context, what: Work) -> int:
        policy = Call(
            f"call-{what.takes:g}", backoff=SOON, timeout=40, heartbeat=20, pickup_timeout=60
        )  # fmt: skip
        return (await ctx.call(policy, work, what)).attempt

    async def nap(ctx: Context) -> int:
        await ctx.sleep(seconds)
        return 0

    found = [
        *await asyncio.gather(
            call(ctx, Work()),
            call(ctx, Work(16.0)),
            call(ctx, Work(41.0, beats=False)),
            call(ctx, Work(1.0, fails=True)),
        )
    ]
    await ctx.race("first", Branch("called", call, Work(20.0)), Branch("slept", nap))
    found.append(await call(ctx, Work(2.0)))
    await nap(ctx)
    return found


def plan(random: Random) -> Plan:
    """Two runs, of which one may be cancelled."""
    pause = random.choice([0.0, 2.0, 15.0])
    acts = [
        Act(random.uniform(0, 10), "start", lambda client, name=name: _start(client, name, pause))
        for name in ("one", "two")
    ]
    if random.random() < 0.4:
        acts.append(Act(random.uniform(5, 60), "cancel", lambda client: client.cancel("two")))
    return Plan(acts=acts)


def _start(client: Client, id: str, pause: float) -> None:
    client.start(remote, pause, id=id)


def look(watch: Watch, call: PortCall) -> None:
    """Before the code goes on after the race, the call that has lost it is closed."""
    if call.name != "store.put_entry" or call.args[1].key != "call-2?1":
        return
    history = watch.lives[call.args[0]].history()
    lost = [entry for entry in history.values() if entry.location == LOSER and entry.mark.startswith("?")]
    if not lost or any(entry.location == LOSER and entry.messages for entry in history.values()):
        return
    row = watch.store.get_task(call.args[0], task_id_of(max(lost, key=attempt_of)))
    if row is None or row.closed is None:
        raise Violation(f"remote steps: {call.args[0]} goes on, and its call {LOSER} is not closed")


def check(ending: Ending) -> None:
    """Each call has one result, that of its last attempt; what was begun and is not wanted was closed."""
    watch = ending.watch
    check_all_ended(watch)
    for run in watch.store.runs:
        check_calls(watch, run)
        if run.status == "cancelled" and run.id == "two":
            continue
        if run.status != "completed":
            raise Violation(f"remote steps: {run.id} has ended as {run.status}: {run.error or run.reason}")
        if ending.fine and watch.output_of(run)[0] != 1:
            raise Violation(f"remote steps: a healthy call had {watch.output_of(run)[0]} attempts")


def check_calls(watch: Watch, run: Run) -> None:
    """Attempts are numbered without gaps, each ends before the next begins, and a result is that of the last."""
    history = watch.lives[run.id].history()
    opened = {task_id_of(e) for e in history.values() if e.kind == "call" and e.mark.startswith("?")}
    performed = {task for run_id, _, task in map(_holder, effects.bodies) if run_id == run.id}
    if performed - opened:
        raise Violation(f"remote steps: {run.id} has {performed - opened} performed, and knows nothing of it")
    for location in {entry.location for entry in history.values() if entry.kind == "call"}:
        entries = sorted((e for e in history.values() if e.location == location), key=lambda entry: entry.order)
        _check_call(watch, run, {entry.mark: entry for entry in entries})


def _holder(text: str) -> tuple[str, str, str]:
    return text.partition("|")


def _check_call(watch: Watch, run: Run, entries: Mapping[str, Entry]) -> None:
    opened = sorted((e for mark, e in entries.items() if mark.startswith("?")), key=attempt_of)
    if [attempt_of(entry) for entry in opened] != list(range(1, len(opened) + 1)):
        raise Violation(f"remote steps: attempts of {run.id} {list(entries)}")
    if not opened:
        return
    result = entries.get("")
    for attempt in opened:
        ended = entries.get(f"@{attempt_of(attempt)}", result)
        if ended is not None and any(message.id != task_id_of(attempt) for message in ended.messages):
            raise Violation(
                f"remote steps: {ended.key} of {run.id} has taken {ended.messages} for attempt {attempt.key}"
            )
    if result is not None and result.error is None and result.value is not None:
        if f'"attempt":{len(opened)}' not in result.value:
            raise Violation(f"remote steps: {result.key} of {run.id} is {result.value} after {len(opened)} attempts")
        if not effects.bodies[lane_holder(run.id, task_id_of(opened[-1]))]:
            raise Violation(f"remote steps: {result.key} of {run.id} has a result, and its body was never run")
        return
    if f"@{len(opened)}" in entries:
        return  # it was cancelled between two attempts
    row = watch.store.get_task(run.id, task_id_of(opened[-1]))
    if row is not None and row.closed is None:  # without a row it was never sent: the run was terminated before
        raise Violation(f"remote steps: nobody has told the worker of {opened[-1].key} of {run.id} to stop: {row}")


REMOTE = Workload(name="remote", plan=plan, check=check, look=look, rate=0.6, pace=0.3)
