"""A run's history as a document: what it takes to replay the run elsewhere, or to put it into another table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from pydantic import TypeAdapter, ValidationError

from durable.errors import ErrorInfo, InvalidInput
from durable.model.entry import Entry
from durable.model.run import Run, Status, Wait

FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRun:
    """What the run record says, without what only its own table and its own turns need."""

    id: str
    workflow: str
    version: str
    status: Status
    created_at: float
    started_at: float | None = None
    input: str | None = None
    """JSON text, wherever it was stored."""
    output: str | None = None
    error: ErrorInfo | None = None
    tags: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    lineage: str | None = None
    parent: str | None = None
    successor: str | None = None
    python: str | None = None
    """`3.12`: the minor version that the run was begun on."""
    waits: tuple[Wait, ...] = ()
    waits_digest: str | None = None
    reason: str | None = None
    """What a suspended run waits for, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedHistory:
    """A run and the entries that count of it, in order of record."""

    format: Literal[1] = FORMAT
    run: ExportedRun
    entries: tuple[Entry, ...] = ()


_ADAPTER: Final = TypeAdapter(ExportedHistory)


def exported(run: Run, entries: tuple[Entry, ...], *, input: str | None, output: str | None) -> dict[str, Any]:
    """The document, as JSON data; what is empty is left out."""
    facts = ExportedRun(
        id=run.id, workflow=run.workflow, version=run.version, status=run.status, created_at=run.created_at,
        started_at=run.started_at, input=input, output=output, error=run.error, tags=run.tags, headers=run.headers,
        lineage=run.lineage, parent=run.parent, successor=run.successor, python=run.python, waits=run.waits, waits_digest=run.waits_digest,
        reason=run.reason if run.status == "suspended" else None,
    )  # fmt: skip
    document = _ADAPTER.dump_python(ExportedHistory(run=facts, entries=entries), mode="json", exclude_defaults=True)
    return {"format": FORMAT, **document}


def from_document(document: Any) -> ExportedHistory:
    """Reads a document; raises InvalidInput naming what is wrong with it."""
    format_ = cast("dict[str, Any]", document).get("format") if isinstance(document, dict) else None
    if format_ != FORMAT:
        reason = f"its format is {format_!r} and this version reads {FORMAT}; `durable export RUN` writes one"
        raise InvalidInput("the history", reason)
    try:
        return _ADAPTER.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput("the history", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
