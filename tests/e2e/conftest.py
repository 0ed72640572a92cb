"""One deployment for all end-to-end tests; making it is a test in itself, so each part is a fixture that says so."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.deployment import Deployment, Emulator, Sam, Say, running_emulator

FAST = {
    "OrchestratorTimeout": "30",  # a crash is seen that much later
    "TimersThreshold": "5",  # sleeps of the test are longer, so they go through EventBridge Scheduler
}


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Say:
    """Shows what goes on while it goes on."""
    reporter: Any = request.config.pluginmanager.getplugin("terminalreporter")
    capturing: Any = request.config.pluginmanager.getplugin("capturemanager")
    started = time.monotonic()  # noqa: TID251 - shown to people only

    def write(text: str) -> None:
        with capturing.global_and_fixture_disabled():
            reporter.write_line(f"{time.monotonic() - started:6.1f} s  {text}")  # noqa: TID251 - the same

    return write


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("e2e")


@pytest.fixture(scope="session")
def emulator(workspace: Path, say: Say) -> Iterator[Emulator]:
    say("start the emulator")
    with running_emulator(workspace) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def sam(emulator: Emulator, workspace: Path, say: Say) -> Sam:
    """SAM, with the package built."""
    sam = Sam(emulator, workspace)
    say("sam validate --lint")
    sam.validate()
    say("sam build")
    sam.build()
    return sam


@pytest.fixture(scope="session")
def deployment(sam: Sam, say: Say) -> Deployment:
    say("sam deploy")
    return sam.deploy("e2e", FAST)
