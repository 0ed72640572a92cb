"""The version of the deployed code changes with its source, and with nothing else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from handlers.code_version import code_version

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_is_the_same_until_a_source_file_of_the_app_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shop_of_the_code_version_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "app.py").write_text("app = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__(f"{package.name}.app")
    before = code_version(f"{package.name}.app")
    assert code_version(f"{package.name}.app") == before
    (package / "app.py").write_text("app = 2\n")
    assert code_version(f"{package.name}.app") != before
    del sys.modules[package.name], sys.modules[f"{package.name}.app"]


def test_an_app_that_is_a_single_file_counts_too() -> None:
    assert code_version(__name__) == code_version(__name__)
