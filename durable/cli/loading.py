"""Loads the app that an option names."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

if TYPE_CHECKING:
    from durable.app import App


def load_app(place: str) -> App[Any]:
    """The App object that `package.module:name` says; a wrong call if there is none."""
    from durable.app import App  # noqa: PLC0415 - commands that load no code shall answer at once

    module, separator, name = place.partition(":")
    if not (separator and name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise typer.BadParameter(f"{place!r} is no app; write it as package.module:name", param_hint="--app")
    sys.path.insert(0, str(Path.cwd()))  # as Lambda has the folder of the code
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"{place} cannot be imported: {error}", param_hint="--app") from None
    if not isinstance(found, App):
        raise typer.BadParameter(f"{place} is a {type(found).__name__}, not an App", param_hint="--app")
    return cast("App[Any]", found)
