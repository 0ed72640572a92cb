"""The commands against an API over in-memory ports: what they print, and their exit codes."""

import json
import socket
from collections.abc import Iterator

import pytest

from durable import App, Context, Signal
from durable.cli.commands import run
from durable.testing import TestEnvironment
from tests.cli.serving import Output, commands, served

app = App("shop")
APPROVE = Signal("approve", bool)


@app.workflow
async def fulfil(ctx: Context, sku: str) -> str:
    return f"{sku} approved" if await ctx.wait_for_signal(APPROVE) else "no"


@pytest.fixture
def url() -> Iterator[str]:
    with served(TestEnvironment(app)) as address:
        yield address


@pytest.fixture
def durable(url: str, capsys) -> Output:
    return commands(url, capsys)


def test_a_run_is_started_messaged_and_shown(durable: Output):
    assert durable("start", "fulfil", '"cup"', "--id", "r-1", "--tag", "vip") == (0, "r-1\n", "")
    code, waiting, _ = durable("show", "r-1")
    assert code == 0
    assert 'waits for: signal "approve"' in waiting
    code, accepted, _ = durable("send", "r-1", "approve", "true", "--id", "m-1")
    assert (code, accepted) == (0, "accepted m-1\n")
    _, ended, _ = durable("show", "r-1")
    assert "completed" in ended
    assert '"cup approved"' in ended


def test_json_is_for_programs(durable: Output):
    durable("start", "fulfil", '"cup"', "--id", "r-1")
    code, out, _ = durable("show", "r-1", "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["id"] == "r-1"
    assert shown["history"] == []
    assert json.loads(durable("runs", "--json")[1])["runs"][0]["id"] == "r-1"


def test_runs_are_listed_and_a_longer_list_goes_on(durable: Output):
    for i in range(3):
        durable("start", "fulfil", '"cup"', "--id", f"r-{i}")
    code, out, _ = durable("runs", "--limit", "2")
    assert code == 0
    assert "more: --cursor" in out
    assert "no runs" in durable("runs", "--status", "failed")[1]


def test_terminate_and_resume_tell_the_status(durable: Output):
    durable("start", "fulfil", '"cup"', "--id", "r-1")
    assert durable("resume", "r-1")[:2] == (0, "suspended\n")
    assert durable("terminate", "r-1", "--reason", "enough")[:2] == (0, "cancelled\n")


def test_the_input_may_come_from_a_file(durable: Output, tmp_path):
    (tmp_path / "input.json").write_text('"pot"')
    assert durable("start", "fulfil", f"@{tmp_path}/input.json", "--id", "r-1")[0] == 0


def test_an_idempotency_key_gives_the_same_run(durable: Output):
    assert durable("start", "fulfil", '"cup"', "--key", "k") == durable("start", "fulfil", '"cup"', "--key", "k")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "unheard"), 'there is no run "unheard"'),
        (("show", "../etc"), "There is no GET"),
        (("show", "two words"), "run id"),
        (("start", "unheard"), 'there is no workflow "unheard"'),
        (("start", "fulfil", "7"), "should be a valid string"),
        (("send", "unheard", "approve", "true"), 'there is no run "unheard"'),
        (("runs", "--status", "asleep"), "is not one of"),
    ],
)
def test_a_refusal_is_one_red_sentence_and_exit_code_1(durable: Output, arguments: tuple[str, ...], said: str):
    code, out, err = durable(*arguments)
    assert (code, out) == (1, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("start",),
        ("start", "fulfil", "{"),
        ("start", "fulfil", "cup"),
        ("start", "fulfil", "@no-such-file.json"),
        ("runs", "--limit", "0"),
        ("runs", "--no-such-option"),
        ("no-such-command",),
    ],
)
def test_a_wrong_call_is_explained_with_exit_code_2(durable: Output, arguments: tuple[str, ...]):
    code, out, err = durable(*arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


def test_nobody_at_the_address_is_said_with_what_to_do(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        code = run(["runs", "--url", f"http://127.0.0.1:{taken.getsockname()[1]}"])
    assert code == 1
    assert "durable dev" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["ftp://example.com", "127.0.0.1:8321", "nonsense"])
def test_an_address_of_another_kind_is_a_wrong_call(url: str, capsys):
    assert run(["runs", "--url", url]) == 2
    assert "address" in capsys.readouterr().err


def test_the_address_may_come_from_the_environment(url: str, monkeypatch, capsys):
    monkeypatch.setenv("DURABLE_URL", url)
    assert run(["runs"]) == 0
    assert "no runs" in capsys.readouterr().out


def test_a_message_that_nothing_asks_for_is_accepted_with_a_warning(durable: Output):
    durable("start", "fulfil", '"cup"', "--id", "r-1")
    code, out, err = durable("send", "r-1", "aprove", "true", "--id", "m-1")
    assert (code, out) == (0, "accepted m-1\n")
    assert 'The run waits for signal "approve"; nothing asks for "aprove" yet.' in " ".join(err.split())
    assert "1 message(s) that nothing has asked for yet: aprove" in durable("show", "r-1")[1]
    assert durable("send", "r-1", "approve", "true")[2] == ""


def test_a_blocked_run_is_listed_as_blocked_and_cannot_clean_up(capsys):
    env = TestEnvironment(app)
    with served(env) as address:
        durable = commands(address, capsys)
        durable("start", "fulfil", '"cup"', "--id", "r-1")
        env.deploy(App("shop"))
        env.app = app  # the API still knows the workflow
        durable("send", "r-1", "approve", "true")
        assert "blocked" in durable("runs")[1]
        assert "fulfil" in durable("runs", "--status", "blocked")[1]
        _, said, _ = durable("cancel", "r-1")
        assert "it is blocked and cannot clean up: use --mode compensate or --mode terminate" in " ".join(said.split())
