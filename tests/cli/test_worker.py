"""`durable worker`: how it begins, and how it stops."""

import os
import signal
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from durable.cli.commands import run
from durable.cli.worker import run_until_stopped

ENVIRONMENT = {
    "DURABLE_TABLE": "table",
    "DURABLE_RUNS_QUEUE_URL": "https://sqs/runs.fifo",
    "DURABLE_RUNS_QUEUE_ARN": "arn:aws:sqs:eu-central-1:1:runs.fifo",
    "DURABLE_TIMERS_QUEUE_URL": "https://sqs/timers",
    "DURABLE_SCHEDULE_GROUP": "timers",
    "DURABLE_SCHEDULE_ROLE_ARN": "arn:aws:iam::1:role/schedules",
    "DURABLE_STEPS_QUEUES": '{"gpu": "https://sqs/gpu"}',
    "AWS_DEFAULT_REGION": "eu-central-1",
}
APP = ("--app", "examples.orders.app:app")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    "arguments", [(), ("--app", "nothing"), ("--app", "no.such:app"), (*APP, "--concurrency", "0")]
)
def test_a_wrong_call_is_told_so(arguments: tuple[str, ...], capsys) -> None:
    assert run(["worker", *arguments]) == 2
    assert "--app" in (err := capsys.readouterr().err) or "--concurrency" in err


@pytest.mark.usefixtures("environment")
def test_a_queue_without_an_address_is_told_with_those_that_there_are(capsys) -> None:
    assert run(["worker", *APP, "--queue", "labels"]) == 1
    err = " ".join(capsys.readouterr().err.split())
    assert '"labels" has no queue of its own' in err
    assert "gpu" in err


@pytest.mark.usefixtures("environment")
def test_variables_that_are_missing_are_named(capsys, monkeypatch) -> None:
    monkeypatch.delenv("DURABLE_TABLE")
    assert run(["worker", *APP, "--queue", "gpu"]) == 1
    assert "DURABLE_TABLE" in capsys.readouterr().err


class FakeServing:
    """Something that holds tasks for a while after it was told to stop."""

    def __init__(self, held: int = 0, looks: float = 0) -> None:
        self.held = held
        self.looks = looks
        self.started = threading.Event()
        self.did: list[str] = []

    def start(self) -> None:
        self.did.append("start")
        self.started.set()

    def stop(self) -> None:
        self.did.append("stop")

    def wait(self, seconds: float) -> bool:
        self.looks -= 1
        if self.looks == 3:
            os.kill(os.getpid(), signal.SIGINT)  # somebody is impatient
        if self.looks <= 0:
            self.held = 0
        return self.held == 0

    def give_back(self) -> int:
        self.did.append("give back")
        return self.held


def stopped(serving: Any, number: int, *, grace: float = 25.0) -> str:
    """What is printed by a worker that gets the signal once it has started."""

    def tell() -> None:
        serving.started.wait(10)
        os.kill(os.getpid(), number)

    telling = threading.Thread(target=tell)
    telling.start()
    out = Console(record=True, width=100, file=StringIO())
    assert run_until_stopped(serving, grace, out) == 0
    telling.join()
    return out.export_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_lets_what_has_begun_end(number: int) -> None:
    before = signal.getsignal(number)
    serving = FakeServing(held=1, looks=2)
    assert "gave back" not in stopped(serving, number)
    assert serving.did == ["start", "stop", "give back"]
    assert signal.getsignal(number) is before


def test_what_does_not_end_within_the_grace_is_given_back() -> None:
    assert "gave back 2 of them" in stopped(FakeServing(held=2, looks=1e9), signal.SIGTERM, grace=0.5)


def test_told_twice_it_gives_back_at_once() -> None:
    serving = FakeServing(held=1, looks=5)
    assert "gave back 1 of them" in stopped(serving, signal.SIGTERM)
