"""`GET /runs/{id}/export` gives a document that replays; older lives of a lineage have histories of their own."""

import json
from typing import Any

from durable import App, Context
from durable.local.events import HttpRequest, http_event
from durable.testing import TestEnvironment, assert_replays
from handlers.api import build
from handlers.runs import Runs

app = App("exporting")


def work(n: int) -> int:
    return n


@app.workflow
async def twice(ctx: Context, n: int) -> int:
    await ctx.step(work, n)
    if n == 2:
        return n
    return await ctx.continue_as_new(twice, n + 1)


def get(env: TestEnvironment, path: str) -> tuple[int, Any]:
    context: Any = object()
    event = http_event(HttpRequest("GET", path, [], b""), 0.0)
    answered = build(Runs(app, env, env.ports)).resolve(event, context)
    return answered["statusCode"], json.loads(answered["body"])


def test_the_document_replays() -> None:
    env = TestEnvironment(app)
    env.start(twice, 1, id="r").result()
    for run_id, n in (("r", "1"), ("r~2", "2")):
        status, document = get(env, f"/runs/{run_id}/export")
        assert (status, document["run"]["id"], document["entries"][0]["value"]) == (200, run_id, n)
        assert_replays(document, app)


def test_a_run_that_does_not_exist_is_not_found() -> None:
    assert get(TestEnvironment(app), "/runs/nobody/export")[0] == 404


def test_an_older_id_shows_the_last_of_its_lineage() -> None:
    env = TestEnvironment(app)
    env.start(twice, 1, id="r").result()
    _, run = get(env, "/runs/r")
    assert (run["id"], run["lineage"], run["successor"], run["output"]) == ("r~2", "r", None, 2)
