"""`durable export` writes a run's history down; `durable replay` checks code against such files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from durable.cli.api import run_path
from durable.cli.loading import load_app
from durable.cli.timeline import printable
from durable.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from durable.cli.api import Api


def add_replaying(cli: typer.Typer, api: Callable[[str], Api], out: Console, err: Console, local: str) -> None:
    """Adds the two commands."""

    @cli.command("export")
    def export(
        run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
        url: Annotated[
            str, typer.Option("--url", envvar="DURABLE_URL", help="Address of the deployment's API.")
        ] = local,
    ) -> None:
        """Print a run's history as a document for `durable replay`."""
        print(json.dumps(api(url).get(run_path(run_id, "export")), ensure_ascii=False, indent=1))

    @cli.command("replay")
    def replay_files(
        files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What `durable export` has written.")],
        app: Annotated[str, typer.Option(help="The App object, as package.module:name.")],
    ) -> None:
        """Check that code takes recorded runs further, before it is deployed. Nothing is run or stored."""
        # What runs code is loaded only where it is needed: the other commands shall answer at once.
        from durable.testing.replaying import ReplayFailed, read_history, replay  # noqa: PLC0415 - see above

        code = load_app(app)
        failed = 0
        for file in files:
            try:
                history = read_history(file)
                replay(history, code)
            except (ReplayFailed, InvalidInput) as problem:
                failed += 1
                err.print(Text(f"FAILED {file}: {printable(str(problem))}", "red"))
            else:
                run = history.run
                told = f'run "{run.id}" ({run.workflow} {run.version}), {len(history.entries)} entries'
                out.print(Text(f"ok     {file}: {printable(told)}"))
        if failed:
            err.print(Text(f"{failed} of {len(files)} histories do not replay", "red"))
            raise typer.Exit(1)
