"""PAY-09, PAY-10: values that break other systems come back equal, or are refused as what they are; HTTP answers with problems."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from durable import DurableError, InvalidInput, LimitExceeded, NotStorable, RunError
from durable.aws import make_clients
from durable.testing import TestEnvironment
from handlers.runs import Runs
from tests.contract.worlds import AwsWorld, moto_world
from tests.handlers.test_api import Caller
from tests.limits.channels import CHANNELS, TOKENS, app
from tests.scenarios.emulated import emulated


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


GOOD: dict[str, Any] = {
    "nothing": None,
    "empty text": "",
    "empty list": [],
    "empty object": {},
    "empty key": {"": 1},
    "NUL": "a\x00b",
    "NUL as a key": {"a\x00b": 1},
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff",
    "right to left": "\u202eabc\u202c \u05d0\u05d1",
    "four bytes a character": "😀𝔘𠜎",
    "a character that combines": "e\u0301 \u0301",
    "not a character": "\uffff\U0010ffff",
    "keys of Python and JavaScript": {"__proto__": {"x": 1}, "__class__": "y", "constructor": None, "": {}},
    "keys with dots and slashes": {"a.b": {"c/d": 1, "$ref": "#/x", "a[0]": 2}},
    "reserved words of DynamoDB": {"size": 1, "status": 2, "S": "x", "B": "AA==", "NULL": True, "M": {}},
    "what looks like a stored form": ["blob:1:r/1", "sealed:AA==:r", "plain:1", "blob:", "sealed:"],
    "what looks like an envelope": {"type": "message", "run_id": "r", "body": "{}"},
    "script": "<img src=x onerror=alert(1)>\"'&amp;</script>",
    "large numbers": [2**53 + 1, 2**63, 2**64, -(2**80), 10**40, 10**300],
    "small numbers": [5e-324, 1e-300, -0.0, 0.1 + 0.2, 30.40, 1e300, 1.7976931348623157e308],
    "true and one": [True, 1, 1.0, False, 0],
    "fifty levels": deep(50),
    "many keys": {str(n): n for n in range(2_000)},
    "numbers as texts": {"1": "1", "01": "01", "1e5": "1e5", "NaN": "NaN", "null": "null"},
}

BAD: dict[str, Any] = {
    "half a character": "\ud83d",
    "half a character as a key": {"\udc00": 1},
    "half a character inside": {"a": ["x\ud800y"]},
    "no number": math.nan,
    "infinity": [math.inf, -math.inf],
    "a set": {1, 2},
    "bytes": b"\xff",
    "keys that are no texts": {1: 2},
    "a tuple": (1, 2),
    "far too deep": deep(50_000),
    "an object": object(),
    "a function": deep,
}


AS_JSON = {"a set", "bytes", "keys that are no texts", "a tuple"}
"""Outside systems speak JSON: what stands for them in Python is made JSON of."""


def came_back(env: TestEnvironment, channel: str, value: Any) -> Any:
    refusal: Any = None
    try:
        back = CHANNELS[channel](env, value)
    except DurableError as refused:
        refusal = refused
    except ValueError as refused:
        refusal = refused
    else:
        assert back == value
        assert repr(back) == repr(value), "1, 1.0 and True are not the same"
    return refusal


@pytest.mark.parametrize("channel", CHANNELS)
def test_pay_10_unusual_values_come_back_equal(channel: str) -> None:
    for name, value in GOOD.items():
        assert came_back(TestEnvironment(app), channel, value) is None, name


@pytest.mark.parametrize("channel", CHANNELS)
def test_pay_05_what_json_cannot_hold_is_refused_and_nothing_is_stuck(channel: str) -> None:
    for name, value in BAD.items():
        if channel in {"callback", "webhook"} and name in AS_JSON:
            continue
        env = TestEnvironment(app)
        refusal = came_back(env, channel, value)
        assert isinstance(refusal, NotStorable | InvalidInput | LimitExceeded | RunError), (name, refusal)
        stuck = [run.id for run in env.world.services.memory.runs if run.status == "pending"]
        assert not stuck, name


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsWorld]:
    with mock_aws():
        yield moto_world(make_clients(), stack="hostile")


@pytest.mark.moto
@pytest.mark.parametrize("channel", ["output", "message", "state", "remote step", "undo", "event"])
def test_pay_10_in_a_table_too(aws: AwsWorld, channel: str) -> None:
    env = TestEnvironment(app, services=emulated(aws))
    assert came_back(env, channel, list(GOOD.values())) is None


RAW = [
    b"",
    b"null",
    b"[]",
    b'"\\ud83d"',
    b'{"workflow": "gives", "input": "\\ud83d"}',
    b'{"workflow": "gives", "input": {"\\udc00": 1}}',
    b'{"workflow": "gives", "input": NaN}',
    b'{"workflow": "gives", "input": 1e400}',
    b'{"workflow": "gives", "input": -Infinity}',
    b'{"workflow": "gives", "input": ' + b"9" * 5_000 + b"}",
    b'{"workflow": "gives", "input": ' + b"[" * 100_000,
    b'{"workflow": "gives", "input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"workflow": "gives", "input": ' + b"[" * 150 + b"]" * 150 + b"}",
    b'{"workflow": "gives", "input": 1, "input": 2}',
    b'{"workflow": "gives", "input": "\xff"}',
    b"\xff\xfe\x00",
    b'{"workflow": "gi\\u0000ves", "input": 1}',
    b'{"workflow": "gives", "id": "a\\u0000", "input": 1}',
    b'{"workflow": "gives", "id": "\\ud800", "input": 1}',
    b'{"workflow": "\\ud800", "input": 1}',
    b'{"workflow": "gives", "input": 1, "tags": ["\\ud800"]}',
    b'{"workflow": "gives", "input": 1, "tags": [1]}',
    b'{"workflow": "gives", "input": 1, "idempotency_key": "\\ud800"}',
    b'{"workflow": "gives", "input": 1, "__proto__": {"x": 1}}',
    b'{"name": "value", "body": "\\ud83d"}',
    b'{"name": "\\ud83d", "body": 1}',
    b'{"name": "value", "body": NaN}',
    b'{"name": "value", "body": 1, "id": "\\ud800"}',
    b'{"name": "ask", "arg": "\\ud800"}',
    b'{"result": "\\ud800"}',
    b'{"result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"error": {"type": "\\ud800", "message": "\\ud800"}}',
    b'{"reason": "\\ud800"}',
    b'{"reviewer": "\\ud800", "decision": "approved"}',
    b'{"reviewer": "ann", "decision": "approved", "comment": "\\ud800"}',
]
"""What is posted to every route."""

ROUTES = [
    "/runs", "/runs/hears/messages", "/runs/hears/updates", "/runs/hears/updates/ask", "/runs/hears/cancel",
    "/runs/hears/terminate", "/runs/hears/resume", "/runs/hears/retry", "/runs/hears/continue", "/reviews/reviewed/review",
    "/events/happened", "/events", "/queues/gpu/claim", "/callbacks/{callback}/complete", "/callbacks/{callback}/fail",
    "/callbacks/{callback}/heartbeat", "/hooks/{hook}", "/hooks/%00", "/tasks/x.y/complete", "/tasks/x.y/fail",
    "/runs/%ED%A0%80/messages", "/runs/a%00/cancel", "/runs/%F0%9F%98%80/messages", "/reviews/reviewed/%00",
]  # fmt: skip

QUERIES = [
    "/runs?tag=%00", "/runs?workflow=%ED%A0%80", "/runs?status=%F0%9F%98%80", "/runs?limit=" + "9" * 5000, "/runs?cursor=%00",
    "/runs?cursor=" + "A" * 9000, "/runs?where=" + "x" * 9000, "/runs/hears/state/%00", "/runs/hears/streams/%ED%A0%80",
    "/runs/hears/streams/talk?after=%00", "/runs/hears/history?cursor=%00", "/runs/hears/updates/ask/%00", "/runs/%00",
    "/runs/" + "x" * 9000, "/count?tag=%00", "/reviews?reviewer=%ED%A0%80", "/hooks/" + "x" * 9000, "/runs/hears?wait=-1",
]  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
def test_sec_no_route_answers_with_a_stack_trace(route: str) -> None:
    with TestEnvironment(app) as env:
        call = with_runs(env)
        hook = env.get_state("has_hook", "url").rpartition("/")[2]
        target = route.format(callback=TOKENS[-1], hook=hook)
        for body in RAW:
            answer = call("POST", target, body)
            assert answer.status < 500 or answer.status == 501, (body[:80], answer)
            assert answer.status < 400 or answer.headers["content-type"] == "application/problem+json", body[:80]
        env.run_until_idle()
        assert all(run.status != "pending" for run in env.world.services.memory.runs)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:30])
def test_sec_no_question_is_answered_with_a_stack_trace(query: str) -> None:
    with TestEnvironment(app) as env:
        answer = with_runs(env)("GET", query)
        assert answer.status < 500
        assert answer.status < 400 or answer.headers["content-type"] == "application/problem+json"


def with_runs(env: TestEnvironment) -> Caller:
    for name in ("hears", "calls_back", "has_hook"):
        env.start(app.newest(name), id=name)
    env.start(app.newest("reviewed"), 1, id="reviewed")
    env.run_until_idle()
    return Caller(env, Runs(app, env, env.ports))
