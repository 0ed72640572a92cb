"""Following a run: what is told, when it ends, and how often the API is asked."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from durable import App, Context
from durable.adapters.memory.clock import VirtualClock
from durable.cli.api import Refusal, Unreachable
from durable.cli.watch import Changed, NotYet, Recorded, Watch
from durable.testing import TestEnvironment
from tests.cli.serving import Output, commands, served

app = App("watched")


def work() -> int:
    return 7


@app.workflow
async def short(ctx: Context) -> int:
    return await ctx.step(work)


@app.workflow
async def broken(ctx: Context) -> None:
    raise ValueError("no")


@app.workflow
async def endless(ctx: Context) -> None:
    await ctx.sleep("300 days")


@pytest.fixture
def durable(capsys: Any) -> Iterator[Output]:
    with served(TestEnvironment(app)) as url:
        yield commands(url, capsys)


def test_a_run_that_completes_is_told_to_its_end(durable: Output):
    durable("start", "short", "--id", "r-1")
    code, out, err = durable("watch", "r-1")
    assert (code, err) == (0, "")
    assert "step" in out
    assert "r-1 completed" in out
    assert "output 7" in out


def test_a_run_that_ends_otherwise_is_exit_code_1(durable: Output):
    durable("start", "broken", "--id", "r-1")
    code, out, _ = durable("watch", "r-1")
    assert code == 1
    assert "error: ValueError: no" in out


def test_a_run_that_goes_on_is_exit_code_3(durable: Output):
    durable("start", "endless", "--id", "r-1")
    code, out, err = durable("watch", "r-1", "--timeout", "0")
    assert code == 3
    assert "r-1 suspended: sleep" in out
    assert 'run "r-1" goes on: it is suspended' in err


def test_json_is_an_object_a_line(durable: Output):
    durable("start", "short", "--id", "r-1")
    told = [json.loads(line) for line in durable("watch", "r-1", "--json")[1].splitlines()]
    assert [list(each) for each in told] == [["entry"], ["run"]]
    assert told[1]["run"]["output"] == 7


class Scripted:
    """An API whose run is what a script says, one record for each look."""

    def __init__(self, *looks: Any) -> None:
        self.looks = list(looks)
        self.asked: list[str] = []

    def get(self, path: str, **query: object) -> Any:
        self.asked.append(path)
        if path.endswith("/history"):
            return {"entries": self.entries}
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, Exception):
            raise look
        run, self.entries = look
        return run


def record(status: str, updated: int = 1, **more: Any) -> dict[str, Any]:
    finished = at(updated) if status in {"completed", "failed"} else None
    return {
        "id": "r-1", "status": status, "reason": None, "created_at": at(0), "updated_at": at(updated),
        "finished_at": finished, **more,
    }  # fmt: skip


def at(seconds: int) -> str:
    return f"2026-01-01T00:00:{seconds:02}.000Z"


def entry(location: str, seconds: int) -> dict[str, Any]:
    return {"location": location, "mark": "", "kind": "step", "recorded_at": at(seconds), "value": None}


def told(api: Scripted, clock: VirtualClock, timeout: float | None = None) -> Iterator[str]:
    for news in Watch(api, "r-1", clock, timeout).follow():  # type: ignore[arg-type]
        match news:
            case Recorded(each, _):
                yield each["location"]
            case Changed(run):
                yield f"{run['id']} {run['status']}"


def followed(*looks: Any, timeout: float | None = None) -> Sequence[str]:
    return list(told(Scripted(*looks), VirtualClock(), timeout))


def test_each_entry_is_told_once_though_the_history_is_read_again():
    a, b = entry("a", 1), entry("b", 2)
    assert followed(
        (record("running"), [a]), (record("running"), [a]), (record("running"), [a, b]), (record("completed", 3), [a, b])
    ) == ["a", "r-1 running", "b", "r-1 completed"]  # fmt: skip


def test_a_history_that_cannot_have_grown_is_not_read_again():
    api = Scripted(*[(record("suspended"), [])] * 5, (record("completed", 2), []))
    assert list(told(api, VirtualClock())) == ["r-1 suspended", "r-1 completed"]
    assert sum(path.endswith("/history") for path in api.asked) == 2


def test_the_run_that_continues_it_is_followed():
    successor = record("completed", 3) | {"id": "r-1~2"}
    assert followed((record("running"), [entry("a", 1)]), (successor, [entry("a", 1)])) == [
        "a", "r-1 running", "a", "r-1~2 completed",
    ]  # fmt: skip


def test_a_blocked_run_ends_the_watch():
    assert followed((record("blocked", reason="diverged"), [])) == ["r-1 blocked"]


def test_it_asks_ever_more_rarely_and_no_longer_than_it_may():
    api, clock = Scripted((record("suspended"), [])), VirtualClock()
    began = clock.monotonic()
    with pytest.raises(NotYet):
        list(told(api, clock, timeout=60))
    assert clock.monotonic() - began == pytest.approx(60)
    assert len(api.asked) < 30


def test_a_short_outage_is_borne():
    trouble = [Refusal(503, {}), Unreachable("http://x", "refused"), Refusal(500, {})]
    assert followed((record("running"), []), *trouble, (record("completed"), [])) == ["r-1 running", "r-1 completed"]


def test_a_long_outage_is_not():
    with pytest.raises(Unreachable):
        followed((record("running"), []), Unreachable("http://x", "refused"))


def test_a_first_answer_must_come():
    with pytest.raises(Unreachable):
        followed(Unreachable("http://x", "refused"), (record("completed"), []))


def test_a_run_that_is_gone_is_said_at_once():
    with pytest.raises(Refusal):
        followed((record("running"), []), Refusal(404, {}), (record("completed"), []))
