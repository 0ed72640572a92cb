"""What users see of the types: right code infers exactly, wrong code is refused, by pyright and mypy alike."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.tree import ROOT

RIGHT = "tests/public_types/right.py"
WRONG = "tests/public_types/wrong.py"


def pyright(path: str, tmp: Path) -> dict[int, str]:
    """The messages by line."""
    # A copy under a configuration of its own, because the project's leaves out what is wrong on purpose.
    shutil.copy(ROOT / path, tmp)
    config = tmp / "pyrightconfig.json"
    config.write_text(
        json.dumps(
            {
                "extraPaths": [str(ROOT)],
                "typeCheckingMode": "strict",
                "pythonVersion": "3.11",
                "reportMissingTypeStubs": False,
            }
        )
    )
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(config)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1, done.stderr
    return {
        message["range"]["start"]["line"] + 1: message["message"]
        for message in report["generalDiagnostics"]
        if message["severity"] == "error"
    }


def mypy(path: str, _tmp: Path) -> dict[int, str]:
    """The messages by line."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found = re.findall(r"^(\S+):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    foreign = [line for line in found if line[0] != path]
    assert not foreign
    return {int(line): message for _, line, message in found}


@pytest.mark.parametrize("checker", [pyright, mypy])
def test_right_code_infers_exactly(checker, tmp_path) -> None:
    assert checker(RIGHT, tmp_path) == {}


@pytest.mark.parametrize("checker", [pyright, mypy])
def test_every_wrong_call_is_refused_and_nothing_else(checker, tmp_path) -> None:
    lines = (ROOT / WRONG).read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, start=1) if line.endswith("# E")}
    refused = checker(WRONG, tmp_path)
    accepted = {number: lines[number - 1].strip() for number in marked - refused.keys()}
    surprising = {number: refused[number] for number in refused.keys() - marked}
    assert not accepted
    assert not surprising
    assert len(marked) >= 60
