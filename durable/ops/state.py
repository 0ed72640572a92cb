"""What a run announces without waiting: published values, tags, attributes, chunks of streams.

Nothing of it is an entry. A call leaves an announcement with the journal; the engine stores it before the next item of
the history, before an effect on others, and before the settle.

| call made                                              | what happens                                               |
|--------------------------------------------------------|------------------------------------------------------------|
| live, after everything recorded                        | stored with the next write                                 |
| in replay, after results of a turn that ended in order | nothing: that turn has stored it                           |
| in replay, after results of a turn that was lost       | stored again: the same value under the same key            |
| in replay, under newly deployed code                   | values, tags and attributes are stored again: the last one |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from durable.journal import Record

if TYPE_CHECKING:
    from durable.model.attributes import AttributeValue
    from durable.model.chunk import ChunkBody
    from durable.ops.operation import Host


@dataclass(frozen=True, slots=True)
class Value:
    """A published value."""

    key: str
    text: str
    """JSON."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Tags to be added."""

    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttributeValues:
    """Attributes to be set."""

    values: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk to be appended to a stream; readers recognise a repetition."""

    stream: str
    body: ChunkBody


What: TypeAlias = Value | Tags | AttributeValues | Chunk


@dataclass(frozen=True, slots=True)
class Announcement:
    """One call, and where in the history the code stood."""

    what: What
    live: bool
    """Whether everything recorded had been delivered, and the turn gone live."""
    last: bool
    """Whether everything recorded had been delivered."""
    epoch: int
    """That of the latest result before the call, 0 before the first."""


def announce(host: Host, live: bool, what: What) -> None:
    """Leaves an announcement for the engine."""
    journal = host.journal
    last = live or journal.order[journal.position] is None
    journal.outgoing.append(Announcement(what, live, last, 0 if live else _latest_epoch(host)))


def _latest_epoch(host: Host) -> int:
    journal = host.journal
    for place in range(journal.position - 1, -1, -1):
        record = journal.order[place]
        if isinstance(record, Record) and record.entry is not None:
            return record.entry.epoch
    return 0
