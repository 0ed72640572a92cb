"""The command line: `durable dev` runs everything on this machine, the other commands talk to a deployment's API."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of the `durable` program."""
    try:
        from durable.cli.commands import run  # noqa: PLC0415 - typer and rich are an extra
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        print('The command line needs its extra: python -m pip install "durable-lambda[cli]"', file=sys.stderr)
        sys.exit(1)
    sys.exit(run())
