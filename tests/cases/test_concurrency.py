"""Troubles with invocations that get into each other's way that users of such systems have had, tried on this one."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from durable import (
    App,
    Backoff,
    Blob,
    Context,
    Event,
    RunAlreadyExists,
    RunFailed,
    RunWasCancelled,
    Signal,
    Singleton,
    Step,
)
from durable.adapters.dynamodb.requests import Failed, Requests
from durable.engine.maintenance import Maintenance
from durable.errors import StoreUnavailable
from durable.local.template import Template, referred
from durable.model.envelope import Wake
from durable.testing import TestEnvironment, kill_process

GO = Signal("go", int)
NEWS = Event("news", str)
app = App("concurrency")


def work(n: int = 0) -> Any:
    return n


@app.workflow
async def chain(ctx: Context) -> list[int]:
    return [await ctx.step("first", work, 1), await ctx.wait_for_signal(GO), await ctx.step("last", work, 3)]


def test_CON_01_whoever_loses_the_run_before_its_last_write_leaves_it_ended_or_about_to_be_woken() -> None:
    clean = TestEnvironment(app)
    clean.start(chain).send(GO, 2)
    clean.run_until_idle()
    for number in range(1, len(clean.calls) + 1):
        env = TestEnvironment(app)
        env.faults.freeze("10m", at=number)
        handle = env.start(chain, id="r")
        handle.send(GO, 2, id="m")
        env.run_until_idle()
        run = env.get("r")
        assert run.ended or run.due_at is not None or env.world.next_event_at() is not None
        assert handle.result() == [1, 2, 3]
        assert [entry.location for entry in env.history("r") if not entry.mark] == ["first", "go", "last"]


made: list[int] = []


def large() -> str:
    made.append(len(made))
    return f"{made[-1]}" + "x" * 600_000


@app.workflow
async def offloading(ctx: Context) -> Blob[str]:
    blob = await ctx.offload("large", large)
    await ctx.step(work)
    return blob


def test_CON_02_a_payload_of_whoever_lost_never_takes_the_place_of_the_winners() -> None:
    clean = TestEnvironment(app)
    clean.start(offloading).result()
    for number in range(1, len(clean.calls) + 1):
        env = TestEnvironment(app)
        made.clear()
        env.faults.freeze("10m", at=number)
        blob = env.start(offloading, id="r").result()
        first = env.ports.blobs.get(blob.key)
        assert first is not None
        env.advance(hours=1)
        assert env.ports.blobs.get(blob.key) == first
        assert blob.size == 600_003


def test_CON_03_of_fifty_starts_at_once_one_counts() -> None:
    env = TestEnvironment(app)

    @app.workflow(name=f"starts-{id(env)}")
    async def echo(ctx: Context, n: int) -> int:
        return n

    def start(n: int) -> str:
        try:
            env.start(echo, n, id="same")
        except RunAlreadyExists:
            return "exists"
        return "started"

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(start, range(50)))
    assert (told.count("started"), told.count("exists")) == (1, 49)
    assert env.result("same") == told.index("started")
    assert len(env.world.services.memory.runs) == 1


@app.remote_step
def remote(n: int) -> int:
    return n


@app.workflow
async def both(ctx: Context) -> list[int]:
    async def message() -> int:
        return await ctx.step("after-message", work, await ctx.wait_for_signal(GO))

    async def result() -> int:
        return await ctx.step("after-result", work, await ctx.call(remote, 7))

    return list(await asyncio.gather(message(), result()))


@pytest.mark.parametrize("number", range(1, 40))
def test_CON_04_a_message_and_a_result_in_one_moment_run_each_step_once(number: int) -> None:
    env = TestEnvironment(app)
    handle = env.start(both, id="r")
    env.faults.meanwhile(lambda: handle.send(GO, 5, id="m"), at=number)
    env.run_until_idle()
    if env.faults.pending:
        handle.send(GO, 5, id="m")
    assert handle.result() == [5, 7]
    assert set(env.world.executions.values()) == {1}


def test_CON_05_maintenance_that_acts_on_an_old_list_changes_nothing() -> None:
    env = TestEnvironment(app)
    env.faults.drop_next()
    handle = env.start(chain, id="r")
    env.run_until_idle()
    env.outage("2m")
    Maintenance(
        env.ports, code_version=env.world.code_version
    ).sweep()  # it has listed the run, and its wake is on its way
    env.ports.runs.send(Wake(run_id="r", id="by-itself", reason="test"))
    handle.send(GO, 2)
    (wake, *_) = [it for it in env.world.services.timers.receive() if '"r"' in it.body]
    env.run_until_idle()
    ended, history = env.get("r"), env.history("r")
    assert ended.status == "completed"
    env.world.services.timers.change_visibility(wake.receipt, 0.0)
    env.run_until_idle()
    assert (env.get("r"), env.history("r")) == (ended, history)


def test_CON_06_maintenance_that_fails_at_one_run_goes_on_with_the_others_and_says_so() -> None:
    env = TestEnvironment(app)
    for n in range(10):
        env.faults.drop_next()
        env.start(chain, id=f"r{n}")
        env.run_until_idle()
    env.outage("5m")

    class ThirdFails:
        tried = 0
        woken: list[str] = []  # noqa: RUF012 - of one test

        def send(self, envelope: Any, *, delay: float = 0.0) -> None:
            self.tried += 1
            if self.tried == 3:
                raise StoreUnavailable("SQS: throttled")
            self.woken.append(envelope.run_id)

    timers: Any = ThirdFails()
    maintenance = Maintenance(replace(env.ports, timers=timers), code_version=env.world.code_version)
    with pytest.raises(StoreUnavailable):  # which the function's alarm counts
        maintenance.sweep()
    assert len(timers.woken) == 9
    timers.woken.clear()
    maintenance.sweep()
    assert len(timers.woken) == 10


def test_CON_07_a_run_held_by_old_code_that_dies_waits_for_one_lease_at_most() -> None:
    env = TestEnvironment(app)
    began = env.now
    handle = env.start(chain, id="r")
    handle.send(GO, 2)

    env.faults.meanwhile(lambda: env.deploy(app), at=4)
    env.crash_at(4)
    env.run_until_idle()
    assert handle.result() == [1, 2, 3]
    assert (env.now - began).total_seconds() <= 151


limited = App("limited")
limited.queue("narrow", concurrency=1)


@limited.remote_step(queue="narrow", timeout="2m", retries=0)
def narrow(n: int) -> int:
    if n == 0:
        kill_process()
    return n


@limited.workflow
async def calls_narrow(ctx: Context, n: int) -> int:
    return await ctx.call(narrow, n)


@limited.workflow(singleton=Singleton("key"))
async def alone(ctx: Context, what: dict[str, str]) -> int:
    return await ctx.wait_for_signal(GO)


def test_CON_08_a_holder_that_dies_gives_its_slot_back_by_itself() -> None:
    env = TestEnvironment(limited)
    handles = [env.start(calls_narrow, n) for n in range(6)]
    with pytest.raises(RunFailed):
        handles[0].result()
    assert [handle.result(timeout="10m") for handle in handles[1:]] == [1, 2, 3, 4, 5]


def test_CON_08_an_operator_frees_the_slot_of_a_run_that_is_stuck() -> None:
    env = TestEnvironment(limited)
    stuck, waiting = (env.start(alone, {"key": "k"}, id=name) for name in ("stuck", "waiting"))
    env.run_until_idle()
    assert "singleton:alone:k" in str(env.get("waiting").reason)
    env.terminate("stuck", reason="it hangs")
    waiting.send(GO, 1)
    assert waiting.result() == 1
    assert stuck.status() == "cancelled"
    assert env.get("stuck").reason == "it hangs"


@app.workflow
async def fails_beside_a_wait(ctx: Context) -> str:
    async def waits() -> str:
        await ctx.sleep(1, name="nap")
        return "ok"

    async def fails() -> str:
        await ctx.step("quick", work)
        raise ValueError("of its own")

    async def retries() -> str:
        return await ctx.step(Step("flaky", retries=1, backoff=Backoff(5)), work)

    try:
        await asyncio.gather(waits(), fails(), retries())
    except ValueError as error:
        await ctx.sleep(60, name="after")
        return str(error)
    return "no"


def test_CON_09_the_failure_of_one_branch_reaches_the_workflow_while_others_wait_and_retry() -> None:
    env = TestEnvironment(app)
    env.mock("flaky").raises(ConnectionError).returns(1)
    handle = env.start(fails_beside_a_wait, id="r")
    env.advance(seconds=10)
    env.restart()
    assert handle.result() == "of its own"


@dataclass
class RefusingDynamo:
    """Cancels every transaction for these reasons."""

    codes: list[str | None]

    class exceptions:  # noqa: N801 - boto3's name
        class TransactionCanceledException(ClientError):
            pass

    def transact_write_items(self, **_: Any) -> None:
        reasons = [{"Code": code or "None"} for code in self.codes]
        raise self.exceptions.TransactionCanceledException(
            {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons},  # type: ignore[typeddict-unknown-key]
            "TransactWriteItems",
        )


def transact(*codes: str | None) -> Any:
    client: Any = RefusingDynamo(list(codes))
    return Requests(client, "table", lambda _: None).transact({"Put": {}}, {"Put": {}})


def test_CON_10_each_reason_of_a_cancelled_transaction_is_told_from_the_others() -> None:
    assert transact("ConditionalCheckFailed", None) == [Failed(None), None]
    for later in ((None, "TransactionConflict"), ("ThrottlingError", "TransactionConflict")):
        with pytest.raises(StoreUnavailable):  # the turn gives the run back and is repeated after a growing pause
            transact(*later)
    with pytest.raises(StoreUnavailable):
        transact("ConditionalCheckFailed", "ProvisionedThroughputExceeded")
    with pytest.raises(ClientError):
        transact("ValidationError", None)


@app.workflow
async def hears_news(ctx: Context) -> str:
    return await ctx.wait_for_event(NEWS, timeout="10m", default="nothing")


def test_CON_11_what_has_expired_counts_as_gone_while_its_row_is_still_there(
    on_aws: Callable[[App[Any]], TestEnvironment],
) -> None:
    env = on_aws(app)
    env.publish_event(NEWS, "old", buffer="1h")
    env.run_until_idle()
    env.outage("61m")
    assert env.start(hears_news).result() == "nothing"
    env.publish_event(NEWS, "new", buffer="1h")
    env.run_until_idle()
    assert env.start(hears_news).result() == "new"


def test_CON_11_a_lease_ends_at_its_time_not_when_its_row_goes() -> None:
    env = TestEnvironment(app)
    env.mock("first").runs(kill_process).returns(1)
    handle = env.start(chain, id="r")
    env.run_until_idle()
    lease = env.get("r")
    assert lease.status != "completed"
    handle.send(GO, 2)
    env.advance(seconds=126)
    assert handle.result(timeout="1m") == [1, 2, 3]


def test_CON_12_a_message_stays_hidden_longer_than_its_invocation_lives(template: Template) -> None:
    functions, queues = template.of_type("AWS::Lambda::Function"), template.of_type("AWS::SQS::Queue")
    hidden = template.body["Mappings"]["Visibility"]
    assert all(row["Seconds"] >= int(timeout) + 30 for timeout, row in hidden.items())
    for source in template.of_type("AWS::Lambda::EventSourceMapping").values():
        timeout = functions[referred(source["FunctionName"])]["Timeout"]
        visibility = queues[referred(source["EventSourceArn"])]["VisibilityTimeout"]
        assert visibility == {"Fn::FindInMap": ["Visibility", timeout, "Seconds"]}
        assert not source.get("MaximumBatchingWindowInSeconds")


@pytest.mark.parametrize("number", range(2, 9))
def test_CON_12_a_second_delivery_during_the_first_finds_the_lease_and_fails_nothing(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    env = TestEnvironment(app)
    handle = env.start(chain, id="r")

    def again() -> None:
        env.ports.timers.send(Wake(run_id="r", id="again", reason="test"))
        env.world.pass_time(0.2)
        assert not env.world.services.timers.pending, "it was answered without a failure"

    env.faults.meanwhile(again, at=number)
    handle.send(GO, 2)
    assert handle.result() == [1, 2, 3]
    assert set(env.world.executions.values()) == {1}
    assert caplog.records == []


@app.workflow
async def backs_off(ctx: Context) -> None:
    await ctx.step(Step("failing", retries=1, backoff=Backoff(20)), work)
    await ctx.step("after", work)


def test_CON_13_a_cancelled_run_in_backoff_does_nothing_more_when_its_old_timer_fires() -> None:
    env = TestEnvironment(app)
    env.mock("failing").raises(ConnectionError).returns(1)
    after = env.mock("after").returns(1)
    handle = env.start(backs_off, id="a")
    env.advance(seconds=5)
    env.cancel("a", "terminate")
    env.advance(seconds=60)
    with pytest.raises(RunWasCancelled):
        handle.result()
    assert after.calls == []
    assert env.world.executions["a", "failing"] == 1
