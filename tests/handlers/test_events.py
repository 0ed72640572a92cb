"""Events from a bus and over HTTP reach the runs that wait for them."""

from collections.abc import Iterator
from typing import Any

import pytest

from durable import App, Context, LimitExceeded
from durable.model.envelope import Publish, from_body
from durable.testing import TestEnvironment
from handlers.events import publish
from handlers.runs import Runs
from tests.handlers.test_api import Caller

app = App("happenings")


@app.workflow
async def waits(ctx: Context) -> int:
    return (await ctx.wait_for_event("order.placed", dict[str, int], timeout="1h"))["n"]


@pytest.fixture
def env() -> Iterator[TestEnvironment]:
    with TestEnvironment(app) as environment:
        environment.start(waits, id="w-1")
        environment.run_until_idle()
        yield environment


@pytest.fixture
def call(env: TestEnvironment) -> Any:
    return Caller(env, Runs(app, env, env.ports))


def an_event(**fields: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "order.placed",
        "source": "shop",
        "account": "123456789012",
        "time": "2025-12-31T23:59:30Z",
        "region": "eu-central-1",
        "resources": [],
        "detail": {"n": 7},
        **fields,
    }


def queued(env: TestEnvironment) -> list[Publish]:
    envelopes = [from_body(message.body) for message in env.world.services.timers.pending]
    return [envelope for envelope in envelopes if isinstance(envelope, Publish)]


def test_an_event_of_the_bus_is_published_under_its_detail_type(env: TestEnvironment) -> None:
    publish(an_event(), env.ports)
    publish(an_event(), env.ports)
    assert env.result("w-1") == 7


def test_its_time_is_that_of_the_event_and_never_later_than_now(env: TestEnvironment) -> None:
    now = env.ports.clock.now()
    for time in ("2025-12-31T23:59:30Z", "2999-01-01T00:00:00Z", "soon", None):
        publish(an_event(time=time), env.ports)
    assert [event.at for event in queued(env)] == [now - 30, now, now, now]
    assert queued(env)[0].id == "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa"


def test_what_cannot_be_an_event_is_dropped_or_raises(env: TestEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    publish(an_event(**{"detail-type": "x" * 300}), env.ports)
    assert "dropped" in caplog.text
    with pytest.raises(LimitExceeded):
        publish(an_event(detail={"text": "x" * 300_000}), env.ports)
    assert queued(env) == []


def test_an_event_over_http(call: Any, env: TestEnvironment) -> None:
    accepted = call("POST", "/events/order.placed?buffer=2h", {"n": 5}, idempotency_key="e-1")
    assert (accepted.status, accepted.body) == (202, {"id": "e-1", "name": "order.placed"})
    (event,) = queued(env)
    assert (event.id, event.buffer, event.body) == ("e-1", 7200, '{"n":5}')
    assert env.result("w-1") == 5


def test_an_event_that_is_named_in_the_body(call: Any, env: TestEnvironment) -> None:
    accepted = call("POST", "/events", {"name": "order.placed", "payload": {"n": 6}, "id": "e-2", "buffer": "1m"})
    assert accepted.body == {"id": "e-2", "name": "order.placed"}
    assert env.result("w-1") == 6


def test_what_is_wrong_is_refused(call: Any) -> None:
    assert call("POST", "/events/x?buffer=soon", {}).status == 422
    assert call("POST", "/events/x?buffer=15d", {}).status == 422
    assert call("POST", "/events/x?bufer=1h", {}).status == 422
    assert call("POST", "/events", {"payload": 1}).status == 422
    assert call("POST", "/events/x", {}, idempotency_key="e 1").status == 422
    assert call("POST", "/events/x", "x" * 300_000).status in {413, 422}
