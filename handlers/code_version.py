"""Tells deployments apart by the code that they carry."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

PACKAGES = ("durable", "handlers")


def code_version(app_module: str) -> str:
    """A hash of the framework's and the app's own source files.

    Blocked runs are tried again under another version, and Lambda's own version is `$LATEST` for ever unless versions
    are published. A few milliseconds for a few hundred files, once per container.
    """
    digest = hashlib.sha256()
    for package in dict.fromkeys((*PACKAGES, app_module.partition(".")[0])):
        for path in _sources(package):
            digest.update(f"{package}:{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(package: str) -> list[Path]:
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None:
        return []
    path = Path(file)
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
