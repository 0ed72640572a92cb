"""A chunk of a stream, as it is stored, and which chunks count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter

_MICROS: Final = 1_000_000
_DIGITS: Final = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkBody:
    """The value, and where it comes from: together the three facts tell a chunk that is stored twice."""

    text: str
    """JSON."""
    source: str
    """Location of the step that appended it, or the scope of the workflow code that did (empty, or ending with `/`)."""
    execution: str = ""
    """Which execution of the step's body it was; sorts them. Empty for workflow code."""
    number: int
    """Counts the chunks of a source, or of one execution of it."""

    def to_text(self) -> str:
        """The JSON text that is stored."""
        return _ADAPTER.dump_json(self).decode()


_ADAPTER: TypeAdapter[ChunkBody] = TypeAdapter(ChunkBody)


def chunk_from(text: str) -> ChunkBody:
    """Reads what `to_text` wrote."""
    return _ADAPTER.validate_json(text)


def chunk_id(at: float, epoch: int, number: int) -> str:
    """Sorts chunks by the time of appending (seconds since 1970), those of one moment by their turn and number."""
    return f"{round(at * _MICROS):0{_DIGITS}d}.{epoch:015d}.{number:09d}"


def before(chunk: str, seconds: float) -> str:
    """An id that sorts before every chunk appended less than so long before this one."""
    moment = max(0, int(chunk[:_DIGITS]) - round(seconds * _MICROS))
    return f"{moment:0{_DIGITS}d}"


def execution_of(epoch: int, attempt: int) -> str:
    """Names an execution of a step's body; later ones sort behind earlier ones."""
    return f"{epoch:015d}.{attempt:06d}"


def counting(bodies: Iterable[ChunkBody]) -> list[ChunkBody]:
    """Of chunks in order: each once, and of every step those of its latest execution alone."""
    found = list(bodies)
    latest: dict[str, str] = {}
    for body in found:
        latest[body.source] = max(latest.get(body.source, ""), body.execution)
    seen: set[tuple[str, int]] = set()
    kept: list[ChunkBody] = []
    for body in found:
        if body.execution == latest[body.source] and (body.source, body.number) not in seen:
            seen.add((body.source, body.number))
            kept.append(body)
    return kept
