"""How a run ended, as it is told to whoever waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter

from durable.errors import ErrorInfo
from durable.model.run import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The body of the message to a waiting run."""

    run_id: str
    """The run that was waited for; of a run that was continued, the last of its lineage."""
    lineage: str
    """The run that was started."""
    status: Status
    output: str | None = None
    """JSON text."""
    error: ErrorInfo | None = None

    def to_text(self) -> str:
        """The JSON text of the message."""
        return _ADAPTER.dump_json(self, exclude_defaults=True).decode()


_ADAPTER: TypeAdapter[Ended] = TypeAdapter(Ended)


def ended_from(text: str) -> Ended:
    """Reads what `to_text` wrote; raises ValueError for anything else."""
    return _ADAPTER.validate_json(text)
