"""Troubles with seeing what goes on that users of such systems have had, tried on this one."""

import json
import string
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from botocore.exceptions import ClientError

from durable import (
    App,
    Context,
    InvalidName,
    LimitExceeded,
    NonRetryableError,
    RunFailed,
    Signal,
    Singleton,
    StateKey,
    Step,
    step_context,
)
from durable.errors import StoreUnavailable
from durable.local.template import Template
from durable.testing import TestEnvironment
from tests.cases.http import caller

GO = Signal("go", int)
PROGRESS = StateKey("progress", str)
app = App("observability")


def work(n: object = 0) -> Any:
    return n


@app.workflow
async def listens(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


unfitting = App("other code")


@unfitting.workflow(name="listens", version="2")
async def of_another_version(ctx: Context) -> None: ...


def answers(env: TestEnvironment) -> Callable[..., tuple[int, Any]]:
    call = caller(env)

    def ask(method: str, target: str, body: Any = None) -> tuple[int, Any]:
        answer = call(method, target, body)
        return answer["statusCode"], json.loads(answer["body"] or "null")

    return ask


ALLOWED = string.ascii_letters + string.digits + "._:@=+-"


@pytest.mark.parametrize("character", ALLOWED)
def test_OBS_01_a_run_with_any_allowed_id_is_opened_messaged_and_cancelled_over_http(character: str) -> None:
    env = TestEnvironment(app)
    call, run_id = answers(env), f"r{character}{character}x"
    assert call("POST", "/runs", {"workflow": "listens", "id": run_id})[0] == 201
    env.run_until_idle()
    for path in (f"/runs/{quote(run_id, safe='')}", f"/runs/{run_id}"):
        assert call("GET", path)[1]["id"] == run_id
    assert call("POST", f"/runs/{quote(run_id, safe='')}/messages", {"name": "other", "body": 1})[0] == 202
    assert call("POST", f"/runs/{quote(run_id, safe='')}/cancel")[0] == 202


@pytest.mark.parametrize("run_id", ["a/b", "a#b", "a%2Fb", "a b", "'a'", "é", "..", "", "x" * 129, "a\n", "a~2"])
def test_OBS_01_any_other_id_is_refused_at_the_start_by_a_rule_that_is_told(run_id: str) -> None:
    env = TestEnvironment(app)
    with pytest.raises(InvalidName, match=r"letters, digits|at most 128 bytes|is not allowed"):
        env.start(listens, id=run_id)


@app.remote_step
def remote() -> int:
    return 1


@app.workflow
async def sleeps(ctx: Context) -> None:
    await ctx.sleep("1 day", name="rest")


@app.workflow
async def calls(ctx: Context) -> int:
    return await ctx.call(remote)


@app.workflow
async def asks_child(ctx: Context) -> int:
    return await ctx.child(listens, id="the-child")


@app.workflow(singleton=Singleton("key"))
async def alone(ctx: Context, what: dict[str, str]) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def expects_soon(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO, timeout="1h")


def test_OBS_02_a_run_says_what_it_waits_for_and_until_when() -> None:
    env = TestEnvironment(app)
    env.start(alone, {"key": "k"}, id="first")
    for workflow in (listens, expects_soon, sleeps, asks_child):
        env.start(workflow, id=workflow.name)
    env.start(alone, {"key": "k"}, id="limited")
    env.run_until_idle()
    env.start(calls, id="calls")
    while not env.world.services.steps.pending:
        env.world.deliver()
    reasons = {run.id: str(run.reason) for run in env.world.services.memory.runs}
    assert reasons["listens"] == 'signal "go"'
    assert reasons["expects_soon"] == 'signal "go" until 2026-01-01 01:00:00 UTC'
    assert reasons["sleeps"] == 'sleep "rest" until 2026-01-02 00:00:00 UTC'
    assert reasons["asks_child"] == 'child "listens" (run the-child)'
    assert "singleton:alone:k" in reasons["limited"]
    assert "remote" in reasons["calls"]
    assert answers(env)("GET", "/runs/calls/history")[1]["calls"][0]["state"] == "queued"
    env.deploy(App("nothing"))
    env.send("listens", GO, 1)
    env.run_until_idle()
    assert "listens" in str(env.get("listens").reason)
    assert env.get("listens").status == "blocked"


class Denied:
    """A store to which we may not talk."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any, **__: Any) -> None:
            raise self._error

        return refuse


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Query"), 500),
        (StoreUnavailable("DynamoDB: no answer"), 503),
    ],
    ids=["denied", "down"],
)
def test_OBS_03_what_cannot_be_read_is_an_error_and_never_an_empty_list(error: Exception, status: int) -> None:
    env = TestEnvironment(app)
    store: Any = Denied(error)
    object.__setattr__(env.ports, "store", store)
    call = answers(env)
    for path in (
        "/runs",
        "/runs?workflow=listens",
        "/count",
        "/runs/r",
        "/runs/r/history",
        "/runs/r/state",
        "/reviews",
    ):
        assert call("GET", path)[0] == status, path


def test_OBS_03_a_run_that_was_deleted_is_not_found_rather_than_empty() -> None:
    env = TestEnvironment(app)
    env.start(listens, id="r").send(GO, 1)
    env.run_until_idle()
    env.delete("r")
    assert answers(env)("GET", "/runs/r")[0] == 404
    assert answers(env)("GET", "/runs/r/history")[0] == 404


def test_OBS_04_a_run_is_read_consistently_and_an_open_row_of_a_listing_is_completed_from_its_record(
    on_aws: Callable[[App[Any]], TestEnvironment], aws: Any
) -> None:
    env = on_aws(app)
    handle = env.start(listens, id="r")
    env.run_until_idle()
    reads: list[bool] = []

    def look(params: Mapping[str, Any], **_: Any) -> None:
        reads.append(params.get("ConsistentRead", False))

    events = aws.clients.dynamodb.meta.events
    for operation in ("GetItem", "Query"):
        events.register(f"before-parameter-build.dynamodb.{operation}", look, unique_id=f"look-{operation}")
    try:
        env.get("r")
        env.history("r")
    finally:
        for operation in ("GetItem", "Query"):
            events.unregister(f"before-parameter-build.dynamodb.{operation}", unique_id=f"look-{operation}")
    assert reads
    assert all(reads)
    env.deploy(unfitting)
    handle.send(GO, 1)
    env.run_until_idle()
    (row,) = answers(env)("GET", "/runs?workflow=listens")[1]["runs"]
    assert row["status"] == env.get("r").status == "blocked"


def test_OBS_05_operators_act_over_http_and_a_termination_keeps_its_reason() -> None:
    env = TestEnvironment(app)
    call = answers(env)
    for run_id in ("messaged", "terminated", "failed"):
        env.start(fails_once if run_id == "failed" else listens, id=run_id)
    env.mock("flaky").raises(NonRetryableError("no")).returns(1)
    env.run_until_idle()
    assert call("POST", "/runs/messaged/messages", {"name": "go", "body": 1})[0] == 202
    assert call("POST", "/runs/terminated/terminate", {"reason": "by ann"})[1]["reason"] == "by ann"
    assert call("POST", "/runs/failed/retry")[0] == 200
    env.run_until_idle()
    assert [env.get(run_id).status for run_id in ("messaged", "failed")] == ["completed", "completed"]


@app.workflow
async def fails_once(ctx: Context) -> int:
    return await ctx.step(Step("flaky", retries=0), work)


@app.workflow
async def progresses(ctx: Context, size: int) -> None:
    for n in range(5):
        ctx.set_state(PROGRESS, f"{n * 20} %" + "x" * size)
        await ctx.sleep(60)


def test_OBS_06_progress_is_apart_from_the_status_and_is_published_once() -> None:
    env = TestEnvironment(app)
    handle = env.start(progresses, 0, id="r")
    env.advance(seconds=130)
    env.restart()
    assert handle.get_state(PROGRESS) == "40 %"
    assert env.get("r").status == "suspended"
    handle.result()
    assert env.calls.count("store.put_state") == 5
    assert "progress" not in [entry.location for entry in env.history("r")]
    with pytest.raises((RunFailed, LimitExceeded)):
        env.start(progresses, 70 * 2**20).result()


def test_OBS_07_there_is_one_span_for_each_attempt_and_one_trace_for_a_run_and_histories_are_the_same_without() -> None:
    def play(*, traced: bool) -> tuple[list[tuple[str, str, int]], list[Any]]:
        shop, spans = App("traced"), list[tuple[str, str, int]]()

        @shop.workflow
        async def sells(ctx: Context) -> None:
            for n in range(10):
                await ctx.step(f"step-{n}", work, n)
                await ctx.sleep(60)

        if traced:

            @shop.propagate
            class Tracing:
                @staticmethod
                def capture() -> dict[str, str]:
                    return {"traceparent": "00-t-1"}

                @staticmethod
                @contextmanager
                def restore(headers: Mapping[str, str]) -> Generator[None]:
                    step = step_context()
                    spans.append((headers["traceparent"], step.location, step.attempt))
                    yield

        env = TestEnvironment(shop)
        handle = env.start(sells, id="r")
        for _ in range(10):
            env.advance(seconds=30)
            env.restart()
        handle.result()
        return spans, [(entry.location, entry.value, entry.n) for entry in env.history("r")]

    spans, history = play(traced=True)
    assert spans == [("00-t-1", f"step-{n}", 1) for n in range(10)]
    assert play(traced=False)[1] == history


def test_OBS_08_VER_04_a_run_that_needs_somebody_is_told_in_the_log_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = TestEnvironment(app)
    env.start(listens, id="r").send(GO, 1)
    env.deploy(unfitting)
    env.run_until_idle()
    (line,) = [record for record in caplog.records if "is blocked" in record.getMessage()]
    assert line.getMessage() == "run r (listens 1) is blocked: durable.errors.UnknownWorkflow"
    assert vars(line)["counts"] == {"RunsBlocked": 1}


def test_OBS_08_overdue_runs_dead_letters_and_a_broken_safety_net_raise_alarms(template: Template) -> None:
    alarms = template.of_type("AWS::CloudWatch::Alarm")
    watched = {(alarm["Namespace"], alarm["MetricName"]) for alarm in alarms.values()}
    assert watched == {
        ("durable", "OverdueRuns"),
        ("durable", "RunsBlocked"),
        ("durable", "RunsDead"),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
        ("AWS/Lambda", "Errors"),
    }
    queues = {queue for queue in template.of_type("AWS::SQS::Queue") if queue.endswith("DeadLetters")}
    seen = {alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0] for name, alarm in alarms.items() if "DeadLetters" in name}
    assert seen == queues
