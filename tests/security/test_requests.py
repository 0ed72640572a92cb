"""Whatever a request holds, it is answered with a problem document that says what is wrong: never a stack trace, never a change."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from durable import App, Context, Signal, Update
from durable.local.events import HttpRequest, http_event
from durable.testing import TestEnvironment
from handlers.api import build
from handlers.runs import Runs
from tests.security.deployed import LambdaContext

GO = Signal("go", int)
RENAME = Update("rename", str, str)
app = App("hostile")


@app.workflow
async def waits(ctx: Context, n: int) -> int:
    return n + await ctx.wait_for_signal(GO)


class Api:
    def __init__(self) -> None:
        self.env = TestEnvironment(app)
        self.env.start(waits, 1, id="r")
        self.env.run_until_idle()
        self._api = build(Runs(app, self.env, self.env.ports))

    def __call__(self, method: str, target: str, body: bytes = b"", /, **changes: Any) -> tuple[int, str, Any]:
        event = http_event(HttpRequest(method, target, [("content-type", "application/json")], body), 0.0)
        context: Any = LambdaContext()
        answer = self._api.resolve(event | changes, context)
        headers = {**answer.get("headers", {}), **{k: v[0] for k, v in answer.get("multiValueHeaders", {}).items()}}
        kind = next((str(value) for name, value in headers.items() if name.lower() == "content-type"), "")
        return answer["statusCode"], kind, json.loads(answer["body"] or "null")

    def changes(self) -> Any:
        return self.env.world.services.memory.runs, self.env.world.services.runs.pending


@pytest.fixture(scope="module")
def api() -> Api:
    return Api()


def start(**members: Any) -> bytes:
    return json.dumps({"workflow": "waits", "input": 1} | members).encode()


BODIES = {
    "nothing": b"",
    "no JSON": b"{workflow: waits}",
    "half of it": b'{"workflow": "waits", "inp',
    "no text": b"\xff\xfe\x00{",
    "a list": b"[]",
    "null": b"null",
    "a number": b"7",
    "a deep list": b'{"workflow": "waits", "input": ' + b"[" * 100_000,
    "a deep list, closed": b'{"workflow": "waits", "input": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "no number": b'{"workflow": "waits", "input": NaN}',
    "a number beyond all": b'{"workflow": "waits", "input": 1e999}',
    "a number of many digits": b'{"workflow": "waits", "input": ' + b"9" * 10_000 + b"}",
    "half a character": b'{"workflow": "waits", "input": "\\ud800"}',
    "a text where a number belongs": start(input="x"),
    "an unknown workflow": start(workflow="rm -rf"),
    "an empty name": start(workflow=""),
    "an unknown member": start(inputs=1),
    "ids of other types": start(id=[1]),
    "an id with a separator": start(id="a/b#c"),
    "an id that is a path": start(id="../../etc/passwd"),
    "an id with a line break": start(id="a\r\nx-evil: 1"),
    "an id of one's own kind": start(id="entity:Cart:1"),
    "an id of a lineage": start(id="r~2"),
    "a long id": start(id="x" * 10_000),
    "an id of half characters": b'{"workflow": "waits", "input": 1, "id": "\\ud800\\ud800"}',
    "tags that are no list": start(tags="red"),
    "too many tags": start(tags=[str(n) for n in range(11)]),
    "a tag of control characters": start(tags=["\x00\x1b[2J"]),
    "a message to itself without an id": start(message={"name": "go"}),
    "an unknown way": start(on_conflict="drop table"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_start_that_cannot_be_is_refused_and_starts_nothing(api: Api, body: bytes) -> None:
    before = api.changes()
    refused(api("POST", "/runs", body))
    assert api.changes() == before


def test_a_body_of_many_megabytes_is_refused_by_its_size(api: Api) -> None:
    status, _, problem = refused(
        api("POST", "/runs/r/messages", json.dumps({"name": "x", "body": "y" * 70_000_000}).encode())
    )
    assert (status, problem["type"]) == (413, "urn:durable:problem:limit-exceeded")


def test_a_body_that_is_said_to_be_base64_and_is_not_is_refused(api: Api) -> None:
    refused(api("POST", "/runs", b"", body="%%%", isBase64Encoded=True))
    refused(api("POST", "/runs", b"", body=base64.b64encode(b"\xff").decode(), isBase64Encoded=True))


PATHS = {
    "nowhere": "/nothing/here",
    "the root": "/",
    "two slashes": "//runs//r",
    "a path upwards": "/runs/..%2f..%2fetc%2fpasswd",
    "a null": "/runs/%00",
    "half an escape": "/runs/%f",
    "no UTF-8": "/runs/%ff%fe",
    "a line break": "/runs/a%0d%0aset-cookie:%20x",
    "a script": "/runs/" + quote("<script>alert(1)</script>", safe=""),
    "a separator of ours": "/runs/run%23r",
    "a long one": "/runs/" + "x" * 5_000,
    "a wait of ages": "/runs/r?wait=1e9",
    "a negative wait": "/runs/r?wait=-1",
    "a parameter that is none": "/runs?drop=1",
    "a cursor of somebody's own making": "/runs?cursor=" + quote('{"a": 1}'),
    "a status that is none": "/runs?status=nice",
    "a limit beyond": "/runs?limit=1000000000000",
    "a filter that is code": "/runs?where=" + quote("__import__('os').system('x')"),
    "a filter of many conditions": "/runs?where=" + quote(" and ".join(["a == 1"] * 500)),
    "a state that is none": "/runs/nobody/state/%00",
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_path_that_leads_nowhere_is_a_problem_document(api: Api, path: str) -> None:
    refused(api("GET", path))


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "X"])
def test_a_method_that_is_not_meant_changes_nothing(api: Api, method: str) -> None:
    before = api.changes()
    for path in ("/runs", "/runs/r/cancel", "/runs/r/messages", "/events/x"):
        refused(api(method, path, b"{}"))
    assert api.changes() == before


CHANGING = ("messages", "cancel", "terminate", "retry", "resume", "continue", "updates", "updates/rename", "reviews")


@pytest.mark.parametrize("what", CHANGING)
@pytest.mark.parametrize("body", [b"{", b"[]", b'{"unknown": 1}', b'"text"', b"\xff"], ids=repr)
def test_nothing_happens_to_a_run_that_is_steered_by_nonsense(api: Api, what: str, body: bytes) -> None:
    before = api.changes()
    refused(api("POST", f"/runs/r/{what}", body))
    assert api.changes() == before


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/hooks/x", b"{}"),
        ("/hooks/" + "x" * 9_000, b"{}"),
        ("/hooks/%00", b"{}"),
        ("/callbacks/a.b/complete", b"{"),
        ("/callbacks/a.b/explode", b"{}"),
        ("/callbacks/e30.e30/complete", b"{}"),
        ("/callbacks/" + quote("é.é") + "/complete", b"{}"),
    ],
)
def test_a_token_that_is_none_is_refused_before_the_body_is_looked_at(api: Api, path: str, body: bytes) -> None:
    status, _, problem = refused(api("POST", path, body))
    assert status in {400, 401, 404}
    assert "x" * 99 not in json.dumps(problem), "what is open to everyone echoes nothing"


def refused(answer: tuple[int, str, Any]) -> tuple[int, str, Any]:
    status, kind, problem = answer
    assert 400 <= status < 500, answer
    assert kind == "application/problem+json"
    assert {"type", "title", "status", "detail", "instance"} <= set(problem)
    assert problem["status"] == status
    assert "Traceback" not in problem["detail"]
    return answer
