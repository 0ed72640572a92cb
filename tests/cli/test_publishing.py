"""`durable publish` tells an event to the runs that wait for it."""

import json
from collections.abc import Iterator

import pytest

from durable import App, Context
from durable.testing import TestEnvironment
from tests.cli.serving import Output, commands, served

app = App("publishing")


@app.workflow
async def waits(ctx: Context) -> int:
    return (await ctx.wait_for_event("order/placed", dict[str, int]))["n"]


@pytest.fixture
def url() -> Iterator[str]:
    with served(TestEnvironment(app)) as address:
        yield address


@pytest.fixture
def durable(url: str, capsys) -> Output:
    return commands(url, capsys)


def test_an_event_is_published_and_received(durable: Output) -> None:
    durable("start", "waits", "--id", "w-1")
    assert durable("publish", "order/placed", '{"n": 7}', "--id", "e-1") == (0, "accepted e-1\n", "")
    code, shown, _ = durable("show", "w-1", "--json")
    assert (code, json.loads(shown)["output"]) == (0, 7)


def test_an_event_may_be_kept(durable: Output) -> None:
    durable("publish", "order/placed", '{"n": 8}', "--buffer", "1h")
    durable("start", "waits", "--id", "w-1")
    _, shown, _ = durable("show", "w-1", "--json")
    assert json.loads(shown)["output"] == 8


def test_what_is_wrong_is_told(durable: Output) -> None:
    assert durable("publish", "x", "--buffer", "soon")[0] == 1
    assert durable("publish", "x", "{")[0] == 2
