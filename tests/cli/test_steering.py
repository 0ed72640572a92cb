"""Commands that end, mend, ask and decide, and those that filter."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from durable import App, Branch, Context, NonRetryableError, StateKey, Step, Update
from durable.adapters.memory.clock import VirtualClock
from durable.cli.steering import ask
from durable.testing import TestEnvironment
from tests.cli.serving import Output, commands, served

app = App("people")
RENAME = Update("re/name", str, str)
undone: list[str] = []


def reserve() -> str:
    return "seat"


def release(result: str) -> None:
    undone.append(result)


def pay() -> None:
    raise NonRetryableError("declined")


@app.workflow
async def account(ctx: Context) -> str:
    ctx.set_attributes(amount=100)
    ctx.set_state(StateKey("a/b", dict[str, int]), {"x": 1})
    ctx.stream("log#1").append("\x1b[2Jhello")
    request = await ctx.updates.next(RENAME)
    if request.arg:
        request.respond(request.arg.upper())
    else:
        request.reject("it is empty")
    await ctx.breakpoint("last look")
    return "done"


async def question(ctx: Context) -> str:
    return (await ctx.review("expense", {"cents": 3}, reviewers=["ann"])).comment


@app.workflow
async def asking(ctx: Context) -> tuple[str, str]:
    return await ctx.join("both/ways", Branch("a", question), Branch("b", question))


@app.workflow
async def booking(ctx: Context) -> str:
    seat = await ctx.step(Step().undo(release), reserve)
    await ctx.step(pay)
    return seat


@app.workflow
async def waiting(ctx: Context) -> None:
    await ctx.step(Step().undo(release), reserve)
    await ctx.sleep("10 days")


@pytest.fixture
def env() -> TestEnvironment:
    undone.clear()
    return TestEnvironment(app)


@pytest.fixture
def durable(env: TestEnvironment, capsys: Any) -> Iterator[Output]:
    with served(env) as url:
        yield commands(url, capsys)


def test_a_run_is_asked_to_end_and_ends(durable: Output):
    durable("start", "waiting", "--id", "r-1")
    assert durable("cancel", "r-1")[:2] == (0, "asked to end (graceful); follow it with: durable watch r-1\n")
    code, out, err = durable("cancel", "r-1")
    assert (code, out) == (1, "")
    assert "has ended (cancelled)" in " ".join(err.split())
    assert undone == []


def test_the_mode_says_how_it_ends(durable: Output):
    durable("start", "waiting", "--id", "r-1")
    assert durable("cancel", "r-1", "--mode", "compensate")[0] == 0
    assert undone == ["seat"]
    durable("start", "waiting", "--id", "r-2")
    assert durable("cancel", "r-2", "--mode", "terminate", "--reason", "enough")[:2] == (0, "cancelled\n")
    assert json.loads(durable("cancel", "r-2", "--mode", "terminate", "--json")[1])["reason"] == "enough"


def test_a_failed_run_is_shown_with_its_undo_and_retried(durable: Output, env: TestEnvironment):
    durable("start", "booking", "--id", "r-1")
    _, failed, _ = durable("show", "r-1")
    assert "undo" in failed
    assert "undone" in failed
    env.mock(pay).returns(None)
    assert durable("retry", "r-1")[:2] == (0, "suspended\n")
    assert '"seat"' in durable("show", "r-1")[1]
    code, _, err = durable("retry", "r-1")
    assert (code, "Only a run that failed or died can be retried" in " ".join(err.split())) == (1, True)


def test_a_run_that_has_ended_is_deleted_and_an_open_one_is_not(durable: Output):
    durable("start", "waiting", "--id", "r-1")
    code, _, err = durable("delete", "r-1")
    assert (code, "Cancel or terminate it first" in " ".join(err.split())) == (1, True)
    durable("terminate", "r-1")
    assert durable("delete", "r-1")[:2] == (0, "deleted\n")
    assert durable("show", "r-1")[0] == 1


def test_an_update_prints_its_answer(durable: Output):
    durable("start", "account", "--id", "r-1")
    assert durable("update", "r-1", "re/name", '"ada"', "--id", "u-1")[:2] == (0, '"ADA"\n')
    assert json.loads(durable("update", "r-1", "re/name", '"ada"', "--id", "u-1", "--json")[1]) == {
        "id": "u-1",
        "response": "ADA",
    }


def test_an_update_that_is_refused_says_why(durable: Output):
    durable("start", "account", "--id", "r-1")
    code, out, err = durable("update", "r-1", "re/name", '""')
    assert (code, out) == (1, "")
    assert "it is empty" in err


def test_an_update_without_an_answer_is_accepted_and_told_apart_by_its_exit_code(durable: Output):
    durable("start", "waiting", "--id", "r-1")
    code, out, err = durable("update", "r-1", "re/name", '"x"', "--id", "u-1", "--wait", "0")
    assert (code, out) == (3, "accepted u-1\n")
    assert "no answer yet" in err


class Slow:
    """An API that answers an update after so many seconds."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        self.clock = clock
        self.answered_at = clock.monotonic() + seconds
        self.asked: list[tuple[str, int]] = []

    def post(self, path: str, body: Any) -> Any:
        path, _, wait = path.partition("?wait=")
        return self._answer(path, int(wait))

    def get(self, path: str, *, name: str, id: str, wait: int) -> Any:
        return self._answer(f"{path} {name} {id}", wait)

    def _answer(self, what: str, wait: int) -> Any:
        self.asked.append((what, wait))
        self.clock.sleep(min(wait, max(0.0, self.answered_at - self.clock.monotonic())))
        return {"id": "u-1"} | ({"response": 7} if self.clock.monotonic() >= self.answered_at else {})


def test_a_longer_wait_is_several_requests_and_the_update_is_sent_once():
    clock = VirtualClock()
    api: Any = Slow(clock, 60)
    assert ask(api, "r-1", {"name": "x", "arg": 1}, 100, clock)["response"] == 7
    asked = "/runs/r-1/updates x u-1"
    assert api.asked == [("/runs/r-1/updates", 25), (asked, 25), (asked, 25)]
    assert clock.monotonic() == 60


def test_a_wait_ends_when_its_time_is_over():
    clock = VirtualClock()
    api: Any = Slow(clock, 600)
    assert "response" not in ask(api, "r-1", {"name": "x", "arg": 1}, 40, clock)
    assert clock.monotonic() == 40


def test_a_run_passes_its_breakpoint(durable: Output):
    durable("start", "account", "--id", "r-1")
    durable("update", "r-1", "re/name", '"ada"')
    code, _, err = durable("continue", "r-1", "another")
    assert (code, "another" in err) == (1, True)
    assert durable("continue", "r-1", "last look")[:2] == (0, "passes last look\n")
    page = durable("show", "r-1")[1]
    assert "completed" in page
    assert "breakpoint" in page


def test_published_values_are_json(durable: Output):
    durable("start", "account", "--id", "r-1")
    assert json.loads(durable("state", "r-1")[1]) == {"a/b": {"x": 1}}
    assert json.loads(durable("state", "r-1", "a/b")[1]) == {"x": 1}
    assert json.loads(durable("state", "r-1", "a/b", "--json")[1]) == {"key": "a/b", "value": {"x": 1}}
    code, _, err = durable("state", "r-1", "c")
    assert (code, 'nothing under "c"' in " ".join(err.split())) == (1, True)


def test_a_stream_is_a_value_a_line(durable: Output):
    durable("start", "account", "--id", "r-1")
    code, out, _ = durable("stream", "r-1", "log#1")
    assert (code, [json.loads(line) for line in out.splitlines()]) == (0, ["\x1b[2Jhello"])
    assert "\x1b" not in out
    durable("cancel", "r-1", "--mode", "terminate")
    followed = json.loads(durable("stream", "r-1", "log#1", "--follow", "--json")[1])
    assert followed["value"] == "\x1b[2Jhello"
    assert durable("stream", "r-1", "other") == (0, "", "")


def test_reviews_are_listed_and_decided_by_their_location(durable: Output):
    assert "no reviews" in durable("reviews", "list")[1]
    durable("start", "asking", "--id", "r-1")
    listed = json.loads(durable("reviews", "list", "--reviewer", "ann", "--json")[1])["reviews"]
    first, second = (review["location"] for review in listed)
    assert "ann" in durable("reviews", "list", "--run", "r-1")[1]
    assert "no reviews" in durable("reviews", "list", "--reviewer", "bob")[1]
    assert durable("reviews", "decide", "r-1", "expense", "approved", "--reviewer", "ann")[0] == 1  # which of the two?
    said = ("--comment", "fine", "--section", "Cost=3 = too much")
    assert durable("reviews", "decide", "r-1", first, "approved", "--reviewer", "ann", *said)[:2] == (0, "approved\n")
    assert durable("reviews", "decide", "r-1", second, "rejected", "--reviewer", "eve")[0] == 1
    assert durable("reviews", "decide", "r-1", second, "rejected", "--reviewer", "ann", "--comment", "no")[0] == 0
    page = durable("show", "r-1")[1]
    assert "approved by ann: fine" in page
    assert "rejected by ann: no" in page


def test_runs_are_filtered_and_counted(durable: Output):
    durable("start", "account", "--id", "r-1", "--tag", "vip")
    durable("start", "waiting", "--id", "r-2")

    def ids(*options: str) -> list[str]:
        return [row["id"] for row in json.loads(durable("runs", "--json", *options)[1])["runs"]]

    assert ids("--tag", "vip") == ["r-1"]
    assert ids("--where", "amount >= 100") == ["r-1"]
    assert ids("--where", "amount > 100") == []
    assert ids("--workflow", "waiting", "--status", "suspended") == ["r-2"]
    assert durable("runs", "--count", "--status", "open")[:2] == (0, "2\n")
    assert json.loads(durable("runs", "--count", "--tag", "vip", "--json")[1]) == {"count": 1}
    assert "amount=100" in durable("runs")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cancel", "unheard"), 'there is no run "unheard"'),
        (("cancel", "r-1", "--reason", "of no use"), 'mode "terminate" only'),
        (("retry", "unheard"), 'there is no run "unheard"'),
        (("update", "unheard", "re/name", "1"), 'there is no run "unheard"'),
        (("state", "unheard"), 'there is no run "unheard"'),
        (("stream", "unheard", "log"), 'there is no run "unheard"'),
        (("continue", "r-1", "last"), "last"),
        (("watch", "unheard"), 'there is no run "unheard"'),
        (("reviews", "list", "--workflow", "unheard"), 'there is no workflow "unheard"'),
        (("reviews", "list", "--run", "unheard"), 'there is no run "unheard"'),
        (("reviews", "decide", "r-1", "x", "approved", "--reviewer", "ann"), "x"),
        (("runs", "--where", "amount"), "is not understood"),
        (("runs", "--where", "amount = 1"), "is not understood"),
        (("start", "waiting", "7", "--id", "r-2"), "input"),
        (("start", "waiting", "--id", "r-1", "--on-conflict", "error"), "exists already"),
    ],
)
def test_a_refusal_is_one_red_sentence_and_exit_code_1(durable: Output, arguments: tuple[str, ...], said: str):
    durable("start", "waiting", "--id", "r-1")
    code, out, err = durable(*arguments)
    assert (code, out) == (1, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("cancel",),
        ("cancel", "r-1", "--mode", "gently"),
        ("retry",),
        ("update", "r-1"),
        ("update", "r-1", "x", "{"),
        ("update", "r-1", "x", "1", "--wait", "-1"),
        ("continue", "r-1"),
        ("watch", "r-1", "--timeout", "soon"),
        ("reviews", "list", "--run", "r-1", "--reviewer", "ann"),
        ("reviews", "decide", "r-1", "x", "maybe", "--reviewer", "ann"),
        ("reviews", "decide", "r-1", "x", "approved"),
        ("reviews", "decide", "r-1", "x", "approved", "--reviewer", "ann", "--section", "no separator"),
        ("start", "waiting", "--on-conflict", "replace"),
    ],
)
def test_a_wrong_call_is_explained_with_exit_code_2(durable: Output, arguments: tuple[str, ...]):
    code, out, err = durable(*arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
