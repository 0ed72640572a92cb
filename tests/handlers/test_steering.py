"""The routes that cancel, retry, count and wait; and that no route takes what it does not know."""

import re
from typing import Any

import pytest

from durable import App, Context, NonRetryableError, RunCancelled, Step
from durable.testing import TestEnvironment
from handlers.runs import Runs
from tests.handlers.test_api import Caller

app = App("rentals")
desk: list[str] = []


def open_desk() -> str:
    desk.append("opened")
    return "desk"


def close_desk(result: str) -> None:
    desk.append("closed")


def pay() -> None:
    raise NonRetryableError("declined")


@app.workflow
async def rental(ctx: Context) -> None:
    await ctx.step(Step().undo(close_desk), open_desk)
    try:
        await ctx.sleep("30 days")
    except RunCancelled:
        ctx.set_state("cleaned", True)
        raise


@app.workflow
async def paid(ctx: Context) -> str:
    await ctx.step(Step().undo(close_desk), open_desk)
    await ctx.step(pay)
    return "paid"


@app.workflow(timeout="2h", tags=["short"])
async def napping(ctx: Context, minutes: int) -> int:
    await ctx.sleep(f"{minutes}m")
    return minutes


@pytest.fixture
def call() -> Any:
    desk.clear()
    with TestEnvironment(app) as env:
        yield Caller(env, Runs(app, env, env.ports))


def started(call: Any, workflow: str, id: str = "r-1") -> None:
    call("POST", "/runs", {"workflow": workflow, "id": id})
    call.env.run_until_idle()


def test_a_graceful_cancellation_is_accepted_and_the_run_cleans_up(call: Any) -> None:
    started(call, "rental")
    asked = call("POST", "/runs/r-1/cancel")
    assert (asked.status, asked.body["cancel_requested"], asked.body["finished_at"]) == (202, "graceful", None)
    call.env.run_until_idle()
    assert call("GET", "/runs/r-1").body["status"] == "cancelled"
    assert call("GET", "/runs/r-1/state?key=cleaned").body == {"key": "cleaned", "value": True}
    assert desk == ["opened"]


def test_a_compensating_cancellation_undoes_what_was_done(call: Any) -> None:
    started(call, "rental")
    assert call("POST", "/runs/r-1/cancel", {"mode": "compensate"}).status == 202
    call.env.run_until_idle()
    assert call("GET", "/runs/r-1").body["status"] == "cancelled"
    assert desk == ["opened", "closed"]


def test_a_termination_is_done_when_it_is_answered_and_keeps_its_reason(call: Any) -> None:
    started(call, "rental")
    done = call("POST", "/runs/r-1/cancel", {"mode": "terminate", "reason": "enough"})
    assert (done.status, done.body["status"], done.body["reason"]) == (200, "cancelled", "enough")
    assert call("POST", "/runs/r-1/cancel", {"mode": "terminate"}).status == 200
    assert call.problem("POST", "/runs/r-1/cancel")[:2] == (409, "run-ended")


def test_a_failed_run_is_retried_from_where_it_failed(call: Any) -> None:
    started(call, "paid")
    failed = call("GET", "/runs/r-1").body
    assert (failed["status"], failed["failed_at"], failed["output"]) == ("failed", ["pay"], None)
    assert failed["error"]["data"]["name"] == "pay"
    assert failed["error"]["cause"]["message"] == "declined"
    call.env.mock(pay).returns(None)
    assert call("POST", "/runs/r-1/retry").body["status"] == "suspended"
    call.env.run_until_idle()
    ended = call("GET", "/runs/r-1").body
    assert (ended["status"], ended["output"], ended["error"]) == ("completed", "paid", None)
    assert desk == ["opened", "closed", "opened"]
    assert call.problem("POST", "/runs/r-1/retry")[:2] == (409, "run-ended")


def test_to_retry_an_open_run_changes_nothing(call: Any) -> None:
    started(call, "rental")
    assert call("POST", "/runs/r-1/retry").status == 200
    assert call("GET", "/runs/r-1").body["status"] == "suspended"


def test_a_caller_may_wait_for_the_end(call: Any) -> None:
    ended = call("POST", "/runs?wait=20", {"workflow": "paid", "id": "r-1"})
    assert (ended.status, ended.body["status"]) == (201, "failed")
    slow = call("POST", "/runs?wait=1", {"workflow": "napping", "id": "r-2", "input": 1})
    assert (slow.status, slow.body["status"]) == (201, "suspended")
    assert call("GET", "/runs/r-2?wait=1").body["status"] == "suspended"
    call.env.advance(minutes=1)
    assert call("GET", "/runs/r-2?wait=25").body["output"] == 1


def test_a_run_tells_when_it_times_out(call: Any) -> None:
    body = call("POST", "/runs?wait=1", {"workflow": "napping", "id": "r-1", "input": 1}).body
    assert body["deadline"] == "2026-01-01T02:00:00.000Z"


def test_a_start_may_insist_on_a_new_run(call: Any) -> None:
    body = {"workflow": "rental", "id": "r-1", "on_conflict": "error"}
    assert call("POST", "/runs", body).status == 201
    assert call.problem("POST", "/runs", body)[:2] == (409, "run-exists")


def test_runs_are_counted_and_listed_by_the_same_filters(call: Any) -> None:
    for i in range(3):
        call("POST", "/runs", {"workflow": "napping", "id": f"r-{i}", "input": i, "tags": ["vip"] if i else []})
    call("POST", "/runs", {"workflow": "rental", "id": "other"})
    call.env.run_until_idle()
    assert call("GET", "/count").body == {"count": 4}
    assert call("GET", "/count?workflow=napping&tag=short&status=open").body == {"count": 2}
    assert call("GET", "/count?tag=vip").body == {"count": 2}
    assert {row["id"] for row in call("GET", "/runs?tag=vip").body["runs"]} == {"r-1", "r-2"}
    assert [row["id"] for row in call("GET", "/runs?status=suspended&workflow=rental").body["runs"]] == ["other"]


@pytest.mark.parametrize(
    ("request_", "status", "type_"),
    [
        (("POST", "/runs/unheard/cancel"), 404, "run-not-found"),
        (("POST", "/runs/unheard/retry"), 404, "run-not-found"),
        (("POST", "/runs/two%20words/cancel"), 422, "invalid-name"),
        (("POST", "/runs/r-1/cancel", {"mode": "gently"}), 422, "invalid-request"),
        (("POST", "/runs/r-1/cancel", {"mode": None}), 422, "invalid-request"),
        (("POST", "/runs/r-1/cancel", {"how": "graceful"}), 422, "invalid-request"),
        (("POST", "/runs/r-1/cancel", {"reason": "of no use"}), 422, "invalid-request"),
        (("POST", "/runs/r-1/cancel", []), 422, "invalid-request"),
        (("POST", "/runs/r-1/cancel", b"{"), 400, "malformed"),
        (("POST", "/runs/r-1/retry", {"from": "pay"}), 422, "invalid-request"),
        (("POST", "/runs", {"workflow": "rental", "on_conflict": "replace"}), 422, "invalid-request"),
        (("POST", "/runs?wait=26", {"workflow": "rental"}), 422, "invalid-input"),
        (("GET", "/runs/r-1?wait=-1"), 422, "invalid-input"),
        (("GET", "/runs/r-1?wait=soon"), 422, "invalid-input"),
        (("GET", "/count?status=asleep"), 422, "invalid-input"),
        (("GET", "/count?workflow=unheard"), 404, "workflow-not-found"),
        (("GET", "/count?limit=1"), 422, "invalid-input"),
        (("GET", "/reviews?workflow=unheard"), 404, "workflow-not-found"),
        (("GET", "/reviews?limit=101"), 422, "invalid-input"),
        (("GET", "/reviews?cursor=nonsense"), 422, "invalid-input"),
        (("GET", "/runs?where=amount%20%3E%201e999"), 422, "invalid-input"),
        (("GET", f"/runs?where=amount%20%3E%20{'9' * 5000}"), 422, "invalid-input"),
        (("GET", f"/runs?where={'%20and%20'.join(['a==1'] * 21)}"), 422, "invalid-input"),
        (("GET", "/runs?where=flag%20%3C%20true"), 422, "invalid-name"),
        (("GET", "/runs?cursor=eyJyZW50YWwiOlsiIiwwXX0="), 422, "invalid-input"),  # {"rental":["",0]}
        (("GET", "/runs?cursor=eyJyZW50YWwiOltudWxsLC0xXX0="), 422, "invalid-input"),  # {"rental":[null,-1]}
        (("GET", f"/runs?status=failed&cursor={'x' * 2000}"), 422, "invalid-input"),
        (("GET", "/runs/unheard/state"), 404, "run-not-found"),
        (("GET", "/runs/r-1/state?key=none"), 404, "state-not-found"),
        (("GET", f"/runs/r-1/state/{'x' * 2000}"), 422, "invalid-name"),
        (("GET", "/runs/r-1/state/a%00b"), 404, "about:blank"),
        (("GET", "/runs/unheard/streams?name=log"), 404, "run-not-found"),
        (("GET", "/runs/r-1/streams"), 422, "invalid-name"),
        (("GET", "/runs/r-1/streams?name=log&limit=501"), 422, "invalid-input"),
        (("GET", "/runs/unheard/export"), 404, "run-not-found"),
        (("GET", "/runs/unheard/reviews"), 404, "run-not-found"),
        (("POST", "/runs/unheard/reviews", {"review": "a", "decision": "approved", "reviewer": "b"}), 404, "run-not-found"),
        (("POST", "/runs/r-1/reviews", {"review": "a", "decision": "approved", "reviewer": "b"}), 409, "not-waiting"),
        (("POST", "/runs/r-1/reviews", {"decision": "approved", "reviewer": "b"}), 422, "invalid-request"),
        (("POST", "/runs/r-1/updates", {"arg": 1}), 422, "invalid-request"),
        (("POST", "/runs/unheard/updates", {"name": "x"}), 404, "run-not-found"),
        (("GET", "/runs/r-1/updates?name=x"), 422, "invalid-name"),
        (("GET", "/runs/unheard/updates?name=x&id=u"), 404, "run-not-found"),
        (("POST", "/runs/unheard/continue", {"label": "x"}), 404, "run-not-found"),
        (("POST", "/runs/r-1/continue", {"label": ""}), 422, "invalid-request"),
        (("POST", "/runs/r-1/continue", b""), 400, "malformed"),
    ],
)  # fmt: skip
def test_what_the_caller_got_wrong_is_a_problem_document(call: Any, request_: Any, status: int, type_: str) -> None:
    started(call, "rental")
    found_status, found_type, detail = call.problem(*request_)
    assert (found_status, found_type) == (status, type_)
    assert detail
    assert "Traceback" not in detail


BODIES: dict[str, Any] = {
    "/runs": {"workflow": "rental"},
    "/runs/r-1/messages": {"name": "x"},
    "/runs/r-1/updates": {"name": "x"},
    "/runs/r-1/reviews": {"review": "x", "decision": "approved", "reviewer": "ann"},
    "/reviews/r-1/x": {"decision": "approved", "reviewer": "ann"},
    "/runs/r-1/continue": {"label": "x"},
}


def routes() -> list[tuple[str, str]]:
    """Method and path of every route, with values in the place of its parameters."""
    env = TestEnvironment(app)
    api = Caller(env, Runs(app, env, env.ports))._api
    known: list[Any] = [*api._static_routes, *api._dynamic_routes]
    return sorted((route.method, re.sub("<.*?>", "x", route.path.replace("<run_id>", "r-1"))) for route in known)


OPEN = {"/hooks/x"}
"""Whoever calls a webhook writes the query that its provider writes."""


@pytest.mark.parametrize(("method", "path"), [route for route in routes() if route[1] not in OPEN])
def test_every_route_refuses_a_parameter_that_it_does_not_know(call: Any, method: str, path: str) -> None:
    started(call, "rental")
    before = call("GET", "/runs").body
    refused = call.problem(method, f"{path}?misspelt=1", BODIES.get(path, {}) if method == "POST" else None)
    assert refused[:2] == (422, "invalid-input")
    assert "misspelt" in refused[2]
    assert call("GET", "/runs").body == before
