"""The API over in-memory ports: events of an HTTP API in, answers and problem documents out."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, Context, Signal
from durable.errors import StoreUnavailable
from durable.local.events import HttpRequest, http_event
from durable.testing import TestEnvironment
from handlers.api import build
from handlers.runs import Runs

app = App("shop")
APPROVE = Signal("approve", bool)


class Order(BaseModel):
    sku: str
    quantity: int = 1


@app.workflow(version="2", tags=["shop"])
async def fulfil(ctx: Context, order: Order) -> str:
    approved = await ctx.wait_for_signal(APPROVE)
    return f"{order.quantity} of {order.sku}" if approved else "nothing"


@app.workflow
async def nightly(ctx: Context) -> int:
    return 7


@app.workflow
async def broken(ctx: Context) -> None:
    raise RuntimeError("out of stock")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass
class LambdaContext:
    aws_request_id: str = "request-1"


class Caller:
    def __init__(self, env: TestEnvironment, runs: Runs | None = None) -> None:
        self.env = env
        self._api = build(runs or Runs(app, env, env.ports))

    def __call__(self, method: str, target: str, body: Any = None, /, **headers: str) -> Answer:
        sent = [
            ("content-type", "application/json"),
            *((name.replace("_", "-"), text) for name, text in headers.items()),
        ]
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        context: Any = LambdaContext()
        answer = self._api.resolve(http_event(HttpRequest(method, target, sent, raw), 0.0), context)
        found = {**answer.get("headers", {}), **{k: v[0] for k, v in answer.get("multiValueHeaders", {}).items()}}
        return Answer(
            answer["statusCode"], {k.lower(): v for k, v in found.items()}, json.loads(answer["body"] or "null")
        )

    def problem(self, *request: Any, **headers: str) -> tuple[int, str, str]:
        answer = self(*request, **headers)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.body["status"] == answer.status
        assert answer.body.keys() >= {"type", "title", "detail", "instance"}
        return answer.status, answer.body["type"].removeprefix("urn:durable:problem:"), answer.body["detail"]


@pytest.fixture
def call() -> Caller:
    return Caller(TestEnvironment(app))


START = {"workflow": "fulfil", "id": "order-1", "input": {"sku": "cup"}}


def test_a_start_creates_the_run_and_says_where_it_is(call: Caller):
    answer = call("POST", "/runs", {**START, "tags": ["vip"]})
    assert answer.status == 201
    assert answer.headers["location"] == "/runs/order-1"
    assert answer.body["version"] == "2"
    assert answer.body["status"] == "pending"
    assert answer.body["input"] == {"sku": "cup", "quantity": 1}
    assert set(answer.body["tags"]) == {"shop", "vip"}


def test_the_same_start_again_gives_the_run_that_exists(call: Caller):
    call("POST", "/runs", START)
    call.env.advance(seconds=1)
    answer = call("POST", "/runs", START)
    assert (answer.status, answer.body["id"]) == (200, "order-1")
    assert answer.headers["location"] == "/runs/order-1"


def test_an_id_is_made_up_where_none_is_given(call: Caller):
    answer = call("POST", "/runs", {"workflow": "fulfil", "input": {"sku": "cup"}})
    assert answer.headers["location"] == f"/runs/{answer.body['id']}"


def test_an_idempotency_key_starts_one_run(call: Caller):
    body = {"workflow": "fulfil", "input": {"sku": "cup"}}
    first = call("POST", "/runs", body, Idempotency_Key="k-1")
    call.env.advance(seconds=1)
    second = call("POST", "/runs", body, Idempotency_Key="k-1")
    assert (first.status, second.status) == (201, 200)
    assert first.body["id"] == second.body["id"]


def test_trace_context_and_durable_headers_become_the_runs(call: Caller):
    sent = {"Traceparent": "00-4bf9-00f0-01", "Baggage": "b" * 600, "Durable_Tenant": "acme", "Authorization": "secret"}
    kept = {"traceparent": "00-4bf9-00f0-01", "durable-tenant": "acme"}
    assert call("POST", "/runs", START, **sent).body["headers"] == kept
    call("POST", "/runs", {**START, "id": "o-2", "message": {"name": "approve", "body": True}}, **sent)
    call.env.run_until_idle()
    assert call.env.get("o-2").headers == kept


def test_a_durable_header_that_is_too_large_is_refused(call: Caller):
    status, type_, detail = call.problem("POST", "/runs", START, Durable_Note="x" * 600)
    assert (status, type_) == (413, "limit-exceeded")
    assert "512" in detail


def test_an_id_with_special_characters_survives_the_way_through_the_url(call: Caller):
    answer = call("POST", "/runs", {**START, "id": "a@b:c=1+2"})
    assert answer.headers["location"] == "/runs/a%40b%3Ac%3D1%2B2"
    assert call("GET", answer.headers["location"]).body["id"] == "a@b:c=1+2"


def test_a_run_is_steered_to_its_end_by_a_message(call: Caller):
    call("POST", "/runs", START)
    call.env.run_until_idle()
    waiting = call("GET", "/runs/order-1").body
    assert (waiting["status"], waiting["waiting_for"]) == ("suspended", ["signal:approve"])
    assert "approve" in waiting["reason"]
    answer = call("POST", "/runs/order-1/messages", {"name": "approve", "body": True, "id": "m-1"})
    assert (answer.status, answer.body) == (202, {"id": "m-1", "waiting_for": ["signal:approve"]})
    call.env.run_until_idle()
    ended = call("GET", "/runs/order-1").body
    assert (ended["status"], ended["output"]) == ("completed", "1 of cup")
    assert ended["finished_at"].endswith("Z")


def test_the_history_tells_every_operation_with_what_it_consumed(call: Caller):
    call("POST", "/runs", START)
    call("POST", "/runs/order-1/messages", {"name": "approve", "body": True, "id": "m-1"})
    call.env.run_until_idle()
    [entry] = call("GET", "/runs/order-1/history").body["entries"]
    assert (entry["kind"], entry["location"]) == ("wait", "approve")
    assert [(m["id"], m["name"], m["body"]) for m in entry["messages"]] == [("m-1", "approve", True)]


def test_a_failed_run_tells_its_error(call: Caller):
    call("POST", "/runs", {"workflow": "broken", "id": "b"})
    call.env.run_until_idle()
    run = call("GET", "/runs/b").body
    assert run["status"] == "failed"
    assert run["error"]["type"] == "RuntimeError"
    assert run["error"]["message"] == "out of stock"


def test_runs_are_listed_by_workflow_and_status_a_page_at_a_time(call: Caller):
    for i in range(3):
        call("POST", "/runs", {**START, "id": f"order-{i}"})
        call.env.advance(seconds=1)
    call("POST", "/runs", {"workflow": "nightly", "id": "n"})
    call.env.run_until_idle()
    assert [row["id"] for row in call("GET", "/runs").body["runs"]] == ["n", "order-2", "order-1", "order-0"]
    assert [row["id"] for row in call("GET", "/runs?status=completed").body["runs"]] == ["n"]
    first = call("GET", "/runs?workflow=fulfil&limit=2").body
    rest = call("GET", f"/runs?workflow=fulfil&limit=2&cursor={first['cursor']}").body
    assert [row["id"] for row in first["runs"] + rest["runs"]] == ["order-2", "order-1", "order-0"]
    assert rest["cursor"] is None


def test_terminating_ends_the_run_and_doing_it_again_changes_nothing(call: Caller):
    call("POST", "/runs", START)
    first = call("POST", "/runs/order-1/terminate", {"reason": "a mistake"})
    assert (first.status, first.body["status"], first.body["reason"]) == (200, "cancelled", "a mistake")
    assert call("POST", "/runs/order-1/terminate").body == first.body


def test_resuming_a_run_that_is_not_blocked_is_harmless(call: Caller):
    call("POST", "/runs", START)
    assert call("POST", "/runs/order-1/resume").status == 200


def test_a_blocked_run_says_why_and_goes_on_when_it_is_resumed_under_mended_code(call: Caller):
    call("POST", "/runs", START)
    call.env.run_until_idle()
    call.env.deploy(App("shop"))
    call("POST", "/runs/order-1/messages", {"name": "approve", "body": True})
    call.env.run_until_idle()
    blocked = call("GET", "/runs/order-1").body
    assert blocked["status"] == "blocked"
    assert "fulfil" in json.dumps([blocked["reason"], blocked["error"]])
    [row] = call("GET", "/runs?status=blocked").body["runs"]
    assert (row["id"], row["workflow"], row["status"]) == ("order-1", "fulfil", "blocked")
    call.env.deploy(app)
    assert call("POST", "/runs/order-1/resume").status == 200
    call.env.run_until_idle()
    assert call("GET", "/runs/order-1").body["status"] == "completed"


def test_a_message_that_nothing_asks_for_is_accepted_and_stays_unread(call: Caller):
    call("POST", "/runs", START)
    call.env.run_until_idle()
    answer = call("POST", "/runs/order-1/messages", {"name": "aprove", "body": True, "id": "m-1"})
    assert (answer.status, answer.body) == (202, {"id": "m-1", "waiting_for": ["signal:approve"]})
    call("POST", "/runs/order-1/messages", {"name": "approve", "body": True, "id": "m-2"})
    call.env.run_until_idle()
    assert [message["id"] for message in call("GET", "/runs/order-1/history").body["unread"]] == ["m-1"]


def test_an_unknown_member_is_named_with_those_that_there_are(call: Caller):
    detail = call.problem("POST", "/runs", {"workflow": "fulfil", "inputs": 1})[2]
    assert 'there is no "inputs"; it takes workflow, input, id, tags' in detail


def test_workflows_are_listed_with_their_types(call: Caller):
    listed = {workflow["name"]: workflow for workflow in call("GET", "/workflows").body["workflows"]}
    assert listed["fulfil"] == {
        "name": "fulfil", "version": "2", "newest": True, "input": "Order", "output": "str", "tags": ["shop"],
    }  # fmt: skip
    assert listed["nightly"]["input"] is None


def test_health_names_the_app(call: Caller):
    assert call("GET", "/health").body == {"status": "ok", "app": "shop"}


ENDED = {"name": "approve", "body": True}


@pytest.mark.parametrize(
    ("request_", "status", "type_"),
    [
        (("POST", "/runs", b"{"), 400, "malformed"),
        (("POST", "/runs", b""), 400, "malformed"),
        (("POST", "/runs", b"\xff\xfe"), 400, "malformed"),
        (("POST", "/runs", b"[" * 100_000), 400, "malformed"),
        (("POST", "/runs", []), 422, "invalid-request"),
        (("POST", "/runs", {}), 422, "invalid-request"),
        (("POST", "/runs", {**START, "tag": ["misspelt"]}), 422, "invalid-request"),
        (("POST", "/runs", {**START, "tags": "no list"}), 422, "invalid-request"),
        (("POST", "/runs", {**START, "workflow": "unheard"}), 404, "workflow-not-found"),
        (("POST", "/runs", {**START, "id": "two words"}), 422, "invalid-name"),
        (("POST", "/runs", {**START, "id": "x" * 129}), 422, "invalid-name"),
        (("POST", "/runs", {**START, "input": {"sku": 1}}), 422, "invalid-input"),
        (("POST", "/runs", {"workflow": "fulfil"}), 422, "invalid-input"),
        (("POST", "/runs", {"workflow": "nightly", "input": 1}), 422, "invalid-input"),
        (("POST", "/runs", {**START, "tags": [str(i) for i in range(20)]}), 413, "limit-exceeded"),
        (("GET", "/runs?limit=0"), 422, "invalid-input"),
        (("GET", "/runs?limit=many"), 422, "invalid-input"),
        (("GET", "/runs?limit=%C2%B2"), 422, "invalid-input"),
        (("GET", "/runs?status=asleep"), 422, "invalid-input"),
        (("GET", "/runs?order=asc"), 422, "invalid-input"),
        (("GET", "/runs?cursor=nonsense"), 422, "invalid-input"),
        (("GET", "/runs?workflow=unheard"), 404, "workflow-not-found"),
        (("GET", "/runs/unheard"), 404, "run-not-found"),
        (("GET", "/runs/unheard/history"), 404, "run-not-found"),
        (("GET", "/runs/%2e%2e"), 422, "invalid-name"),
        (("GET", "/runs/a%00"), 404, "about:blank"),
        (("POST", "/runs/unheard/messages", ENDED), 404, "run-not-found"),
        (("POST", "/runs/unheard/terminate"), 404, "run-not-found"),
        (("POST", "/runs/unheard/resume"), 404, "run-not-found"),
        (("POST", "/runs/ended/messages", ENDED), 409, "run-ended"),
        (("POST", "/runs/ended/terminate"), 409, "run-ended"),
        (("POST", "/runs/ended/resume"), 409, "run-ended"),
        (("POST", "/runs/open/messages", {"body": 1}), 422, "invalid-request"),
        (("POST", "/runs/open/messages", {"name": "", "body": 1}), 422, "invalid-request"),
        (("POST", "/runs/open/messages", {"name": "a\nb", "body": 1}), 422, "invalid-name"),
        (("POST", "/runs/open/messages", {"name": "approve", "body": 1, "id": "two words"}), 422, "invalid-name"),
        (("POST", "/runs/open/terminate", {"why": "misspelt"}), 422, "invalid-request"),
        (("POST", "/runs/open/resume", {"now": True}), 422, "invalid-request"),
        (("GET", "/nothing"), 404, "about:blank"),
        (("PUT", "/runs"), 404, "about:blank"),
    ],
)  # fmt: skip
def test_what_the_caller_got_wrong_is_a_problem_document(call: Caller, request_: Any, status: int, type_: str):
    call("POST", "/runs", {"workflow": "nightly", "id": "ended"})
    call("POST", "/runs", {**START, "id": "open"})
    call.env.run_until_idle()
    found_status, found_type, detail = call.problem(*request_)
    assert (found_status, found_type) == (status, type_)
    assert detail
    assert "Traceback" not in detail


def test_an_existing_run_with_another_input_is_a_conflict(call: Caller):
    call("POST", "/runs", START)
    assert call.problem("POST", "/runs", {**START, "input": {"sku": "pot"}})[:2] == (409, "run-exists")


def test_each_fault_of_an_input_is_named_and_its_value_is_not(call: Caller):
    answer = call("POST", "/runs", {**START, "input": {"sku": 4711, "quantity": "secret"}})
    assert [(fault["loc"], fault["type"]) for fault in answer.body["errors"]] == [
        (["sku"], "string_type"),
        (["quantity"], "int_parsing"),
    ]
    assert "4711" not in json.dumps(answer.body)
    assert "secret" not in json.dumps(answer.body)


class Broken(Runs):
    def get(self, run_id: str, *, wait: int = 0) -> dict[str, Any]:
        raise StoreUnavailable("throttled") if run_id == "busy" else KeyError("a secret of ours")


@pytest.fixture
def call_broken() -> Caller:
    env = TestEnvironment(app)
    return Caller(env, Broken(app, env, env.ports))


def test_a_service_that_does_not_answer_is_for_later(call_broken: Caller):
    answer = call_broken("GET", "/runs/busy")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


def test_a_fault_of_ours_tells_nothing_but_where_to_look(call_broken: Caller, caplog):
    status, type_, detail = call_broken.problem("GET", "/runs/any")
    assert (status, type_) == (500, "about:blank")
    assert "secret" not in detail
    assert "a secret of ours" in caplog.text


def test_a_message_starts_its_run(call: Caller):
    start = {**START, "message": {"name": "approve", "body": True, "id": "m-1"}}
    answer = call("POST", "/runs", start)
    assert (answer.status, answer.body) == (202, {"id": "order-1", "message": "m-1"})
    assert answer.headers["location"] == "/runs/order-1"
    call.env.run_until_idle()
    assert call("GET", "/runs/order-1").body["output"] == "1 of cup"
    assert call.problem("POST", "/runs", start)[:2] == (409, "run-ended")


def test_a_start_with_a_message_needs_an_id(call: Caller):
    start = {**START, "message": {"name": "approve", "body": True}}
    del start["id"]
    assert "names the run" in call.problem("POST", "/runs", start)[2]
    assert "takes neither wait" in call.problem("POST", "/runs?wait=3", {**start, "id": "order-1"})[2]
