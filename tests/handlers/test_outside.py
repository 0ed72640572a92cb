"""The routes for outside systems: answers to callbacks, and calls of webhooks."""

import hmac
import json
import logging
from dataclasses import dataclass
from typing import Any

import pytest

from durable import (
    App,
    CallbackFailed,
    Context,
    HookRequest,
    HookResponse,
    NonRetryableError,
    Ok,
    Signal,
    StateKey,
    step_context,
)
from durable.local.events import HttpRequest, http_event
from durable.testing import TestEnvironment
from handlers.runs import Runs
from tests.handlers.test_api import Caller, LambdaContext

ADDRESS = StateKey("address", str)
app = App("outside")
TOKENS: dict[str, str] = {}


def submit(token: str) -> None:
    TOKENS[step_context().run_id] = token


@app.workflow
async def pays(ctx: Context) -> Any:
    try:
        return await ctx.callback("pay", submit, dict[str, Any], timeout="1h", heartbeat="10m")
    except CallbackFailed as failure:
        return [failure.error.type, failure.error.message, failure.error.data, failure.retryable]


@app.workflow
async def hears(ctx: Context) -> list[Any]:
    told = HookResponse(status=200, body="thanks", challenge="hub.challenge", headers={"x-more": "later"})
    hook = ctx.webhook("provider", respond=told)
    ctx.set_state(ADDRESS, hook.url)
    await ctx.wait_for_signal(Signal("go", str))
    return [await hook.wait(object) for _ in range(4)]


@app.workflow
async def hears_plainly(ctx: Context) -> None:
    hook = ctx.webhook("provider")
    ctx.set_state(ADDRESS, hook.url)
    await hook.wait(str)


SECRET = b"what the provider signs with"


def check_signature(request: HookRequest) -> int:
    signed = hmac.new(SECRET, request.raw, "sha256").hexdigest()
    if not hmac.compare_digest(signed, request.headers.get("x-signature", "")):
        raise NonRetryableError("somebody else has called")
    return json.loads(request.raw)["cents"]


@app.workflow
async def hears_signed_calls(ctx: Context) -> int:
    hook = ctx.webhook("provider", whole=True)
    ctx.set_state(ADDRESS, hook.url)
    while True:
        request = await hook.wait(HookRequest)
        checked = await ctx.try_step(check_signature, request)
        if isinstance(checked, Ok):
            return checked.value


@dataclass
class Said:
    status: int
    headers: dict[str, str]
    text: str


class Outside(Caller):
    """A caller that is no program of ours: its bodies are what they are."""

    def raw(self, method: str, target: str, body: bytes = b"", **headers: str) -> Said:
        sent = [(name.replace("_", "-"), text) for name, text in headers.items()]
        context: Any = LambdaContext()
        answer = self._api.resolve(http_event(HttpRequest(method, target, sent, body), 0.0), context)
        found = {**answer.get("headers", {}), **{k: v[0] for k, v in answer.get("multiValueHeaders", {}).items()}}
        return Said(answer["statusCode"], {k.lower(): v for k, v in found.items()}, answer["body"])


@pytest.fixture
def call() -> Outside:
    env = TestEnvironment(app)
    env.start(pays, id="p-1")
    env.start(hears, id="h-1")
    env.start(hears_plainly, id="h-2")
    env.run_until_idle()
    return Outside(env, Runs(app, env, env.ports))


def path_of(call: Outside, run_id: str = "h-1") -> str:
    url = call.env.get_state(run_id, ADDRESS)
    assert url is not None
    return url.removeprefix("https://durable.test")


def test_a_callback_is_completed(call: Outside) -> None:
    answer = call("POST", f"/callbacks/{TOKENS['p-1']}/complete", {"result": {"number": 7}})
    assert (answer.status, answer.body) == (202, {"status": "accepted"})
    assert call.env.result("p-1") == {"number": 7}


def test_a_callback_fails(call: Outside) -> None:
    error = {"type": "CardDeclined", "message": "no funds", "data": {"code": 51}}
    answer = call("POST", f"/callbacks/{TOKENS['p-1']}/fail", {"error": error, "retryable": True})
    assert answer.status == 202
    assert call.env.result("p-1") == ["CardDeclined", "no funds", {"code": 51}, True]


def test_a_sign_of_life_is_kept(call: Outside) -> None:
    for _ in range(8):
        call.env.advance(minutes=7)
        assert call("POST", f"/callbacks/{TOKENS['p-1']}/heartbeat", {"progress": 0.5}).status == 202
    row = call.env.ports.store.get_task("p-1", "pay")
    assert row is not None
    assert row.progress == "0.5"
    assert call.env.get("p-1").status == "suspended"


def test_what_is_wrong_with_an_answer_is_told(call: Outside) -> None:
    token = TOKENS["p-1"]
    assert call.problem("POST", "/callbacks/x/complete", {"result": 1})[:2] == (401, "invalid-token")
    assert call.problem("POST", f"/callbacks/{token[:-1]}/complete", {"result": 1})[:2] == (401, "invalid-token")
    assert call.problem("POST", f"/callbacks/{token}/complete", {"resolt": 1})[:2] == (422, "invalid-request")
    assert call.problem("POST", f"/callbacks/{token}/complete", b"{")[:2] == (400, "malformed")
    assert call.problem("POST", f"/callbacks/{token}/fail", {"error": {}})[:2] == (422, "invalid-request")
    too_large = (413, "limit-exceeded")
    assert call.problem("POST", f"/callbacks/{token}/heartbeat", {"progress": "x" * 5_000})[:2] == too_large
    call.env.cancel("p-1", "terminate")
    assert call.problem("POST", f"/callbacks/{token}/complete", {"result": 1})[:2] == (410, "run-ended")
    call.env.advance(days=2)
    assert call.problem("POST", f"/callbacks/{token}/complete", {"result": 1})[:2] == (410, "token-expired")


def test_bodies_of_any_kind_are_calls(call: Outside) -> None:
    path = path_of(call)
    kinds = [
        (b'{"a": 1}', "application/json; charset=utf-8"),
        (b"a=1&b=2", "application/x-www-form-urlencoded"),
        (b"\xff\xfe", "application/octet-stream"),
        (b'{"specversion": "1.0"}', "application/cloudevents+json"),
    ]
    for body, kind in kinds:
        said = call.raw("POST", path, body, content_type=kind)
        assert (said.status, said.text, said.headers["x-more"]) == (200, "thanks", "later")
        call.env.advance(seconds=1)
    call.env.send("h-1", "go", "")
    assert call.env.result("h-1") == [{"a": 1}, "a=1&b=2", "//4=", {"specversion": "1.0"}]


@pytest.mark.parametrize("header", ["webhook_id", "Idempotency_Key"])
def test_a_call_that_is_sent_again_counts_once(call: Outside, header: str) -> None:
    path = path_of(call)
    for n, number in enumerate(["m-1", "m-1", "m-2", "m-3", "m-2", "m-4"]):
        assert (
            call.raw("POST", path, str(n).encode(), content_type="application/json", **{header: number}).status == 200
        )
        call.env.advance(seconds=1)
    call.env.send("h-1", "go", "")
    assert call.env.result("h-1") == [0, 2, 3, 5]


def test_a_provider_may_check_the_address(call: Outside) -> None:
    said = call.raw("GET", f"{path_of(call)}?hub.mode=subscribe&hub.challenge=%3Cb%3E42")
    assert (said.status, said.text) == (200, "<b>42")
    assert said.headers["content-type"].startswith("text/plain")
    assert said.headers["x-content-type-options"] == "nosniff"
    assert call.raw("GET", path_of(call)).status == 422
    assert call.raw("GET", f"{path_of(call, 'h-2')}?hub.challenge=42").status == 405
    assert call.raw("POST", path_of(call, "h-2"), b"hello").status == 202


def test_what_is_wrong_with_a_call_is_told(call: Outside) -> None:
    path = path_of(call)
    assert call.problem("POST", path[:-1], "x")[:2] == (401, "invalid-token")
    assert call.problem("GET", path[:-1])[:2] == (401, "invalid-token")
    assert call.problem("POST", path, b"{")[:2] == (400, "malformed")
    assert call.problem("POST", path, 1, Idempotency_Key="a b")[:2] == (422, "invalid-name")
    call.env.cancel("h-1", "terminate")
    assert call.problem("POST", path, 1)[:2] == (410, "run-ended")


def test_tokens_and_bodies_stay_out_of_answers_and_logs(call: Outside, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, path = TOKENS["p-1"], path_of(call)
    answers = [
        call("POST", f"/callbacks/{token}/complete", {"resolt": "secret body"}),
        call("POST", f"/callbacks/{token}/withdraw", {"result": "secret body"}),
        call("POST", f"/callbacks/{token}/fail", {"error": {"message": "secret body"}}),
        call("POST", path, b'"secret body'),
        call("GET", path),
    ]
    call.env.run_until_idle()
    told = json.dumps([answer.body for answer in answers]) + caplog.text
    assert token not in told
    assert path.rpartition("/")[2] not in told
    assert "secret body" not in told


def test_a_run_that_wants_whole_calls_can_check_who_made_them(call: Outside) -> None:
    call.env.start(hears_signed_calls, id="h-3")
    call.env.run_until_idle()
    path, body = path_of(call, "h-3"), b'{"cents":  7}'
    forged = call.raw("POST", path, body, content_type="application/json", x_signature="0" * 64)
    assert forged.status == 202
    signature = hmac.new(SECRET, body, "sha256").hexdigest()
    assert call.raw("POST", path, body, content_type="application/json", X_Signature=signature).status == 202
    assert call.env.result("h-3") == 7
