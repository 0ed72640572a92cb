"""The routes for state, updates, reviews, breakpoints and streams."""

from typing import Any

import pytest

from durable import App, Context, StateKey, Update
from durable.testing import TestEnvironment
from handlers.runs import Runs
from tests.handlers.test_api import Caller

RENAME = Update("rename", str, int)
app = App("people")


@app.workflow
async def everything(ctx: Context) -> str:
    ctx.set_state(StateKey("progress", float), 0.5)
    ctx.set_attributes(amount=100)
    ctx.add_tags("vip")
    ctx.stream("log").append("begins")
    request = await ctx.updates.next(RENAME)
    request.respond(len(request.arg))
    review = await ctx.review("expense", {"cents": 3}, reviewers=["ann"])
    await ctx.breakpoint("last")
    return review.comment


@everything.validator(RENAME)
def check(name: str) -> None:
    if not name:
        raise ValueError("empty")


@pytest.fixture
def call() -> Any:
    with TestEnvironment(app) as env:
        env.start(everything, id="run/1".replace("/", "-"))
        env.run_until_idle()
        yield Caller(env, Runs(app, env, env.ports))


def test_state_streams_and_listing(call: Any) -> None:
    assert call("GET", "/runs/run-1/state/progress").body == {"key": "progress", "value": 0.5}
    assert call("GET", "/runs/run-1/state").body == {"state": {"progress": 0.5}}
    assert call("GET", "/runs/run-1/state/other").status == 404
    assert call("GET", "/runs/run-2/state/progress").body["type"] == "urn:durable:problem:run-not-found"
    stream = call("GET", "/runs/run-1/streams/log").body
    assert ([chunk["value"] for chunk in stream["chunks"]], stream["ended"]) == (["begins"], False)
    assert call("GET", f"/runs/run-1/streams/log?after={stream['cursor']}").body["chunks"] == []
    assert [row["id"] for row in call("GET", "/runs?tag=vip&where=amount%20%3E%3D%20100").body["runs"]] == ["run-1"]
    assert call("GET", "/runs?where=amount%20%3E%20100").body["runs"] == []
    assert call("GET", "/runs?where=amount").status == 422
    assert call("GET", "/runs/run-1").body["attributes"] == {"amount": 100}


def test_an_update_is_answered_rejected_or_accepted(call: Any) -> None:
    rejected = call("POST", "/runs/run-1/updates/rename", {"arg": ""})
    assert (rejected.status, rejected.body["type"]) == (422, "urn:durable:problem:update-rejected")
    assert call("POST", "/runs/run-1/updates/rename", {"arg": 3}).status == 422
    assert call("POST", "/runs/run-1/updates/rename?wait=99", {"arg": "x"}).status == 422
    answered = call("POST", "/runs/run-1/updates/rename", {"arg": "ada", "id": "u-1"})
    assert (answered.status, answered.body) == (200, {"id": "u-1", "response": 3})
    late = call("POST", "/runs/run-1/updates/rename?wait=0", {"arg": "bob", "id": "u-2"})
    assert (late.status, late.body) == (202, {"id": "u-2"})
    assert call("GET", "/runs/run-1/updates/rename/u-1").body == {"id": "u-1", "response": 3}


def test_reviews_are_listed_and_decided_and_a_breakpoint_is_passed(call: Any) -> None:
    call("POST", "/runs/run-1/updates/rename", {"arg": "ada"})
    listed = call("GET", "/reviews?reviewer=ann").body["reviews"]
    assert [(review["run_id"], review["name"], review["artifact"]) for review in listed] == [
        ("run-1", "expense", {"cents": 3})
    ]
    assert call("GET", "/runs/run-1/reviews").body["reviews"] == listed
    decision = {"decision": "approved", "reviewer": "eve", "comment": "ok", "sections": [{"title": "t", "text": "x"}]}
    assert call("POST", "/reviews/run-1/expense", decision).status == 403
    assert call("POST", "/reviews/run-1/other", decision).status == 409
    assert call("POST", "/reviews/run-1/expense", decision | {"decision": "maybe"}).status == 422
    assert call("POST", "/reviews/run-1/expense", decision | {"reviewer": "ann"}).status == 202
    assert call("POST", "/runs/run-1/continue", {"label": "last"}).status == 409
    call.env.run_until_idle()
    assert call("POST", "/runs/run-1/continue", {"label": "last"}).status == 202
    call.env.run_until_idle()
    assert call("GET", "/runs/run-1").body["output"] == "ok"
    assert call("POST", "/runs/run-1/updates/rename", {"arg": "x"}).status == 409
