"""Acquiring the exclusive right to take a turn, and loading what earlier turns have left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from durable.engine import fencing
from durable.engine.creating import create
from durable.errors import Fenced, StoreUnavailable
from durable.model.history import counting_entries, unpacked
from durable.model.ids import PREFIX_OF_ENTITIES
from durable.ports import Acquired, Held, Missing, NotRunnable
from durable.records import pages_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from durable.engine.cache import HistoryCache
    from durable.engine.options import EngineOptions
    from durable.model.entry import Entry
    from durable.model.envelope import StartSpec
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ports import Payload, Ports

ACQUIRE_TRIES = 5


class RunGone(Exception):
    """There is no such run, or it is being deleted."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to take one turn. Nothing starts after `ends`, by the monotonic clock."""

    run: Run
    ends: float

    def knowing(self, run: Run) -> Lease:
        """The same right, with what the record says now that others have asked for."""
        asked = replace(self.run, wakes=run.wakes, cancel_requested=run.cancel_requested, watched=run.watched)
        return Lease(asked, self.ends)


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a turn knows when it begins: entries that count, in order of record, and messages."""

    entries: Sequence[Entry]
    messages: Sequence[StoredMessage]
    payloads: Mapping[Payload, str] = field(default_factory=dict["Payload", str])
    buried: frozenset[str] = frozenset()
    """Ids of messages that were consumed by entries which are gone."""
    unreadable: str | None = None
    """Why something of the history cannot be read; None where all of it can."""

    @cached_property
    def consumed(self) -> frozenset[str]:
        """Ids of messages that an entry has consumed."""
        return self.buried.union(message.id for entry in self.entries for message in entry.messages)

    @property
    def unread(self) -> int:
        """How many of the messages no entry has consumed."""
        consumed = self.consumed
        return sum(message.awaits_consumption and message.id not in consumed for message in self.messages)


def acquire(
    ports: Ports, run_id: str, *, ends: float, options: EngineOptions, code_version: str, due_is_near: bool,
    start: StartSpec | None = None,
) -> Lease | Run | None:  # fmt: skip
    """Takes the lease, or makes sure that its holder will look again; None when there is nothing to do here.

    A run that goes on as another one, or that owes something to others since its end, is given as it is. One that is
    missing is created first, where `start` says how. Raises RunGone.
    """
    owner = ports.new_id()
    for _ in range(ACQUIRE_TRIES):
        now = ports.clock.now()
        left = ends - ports.clock.monotonic()
        answer = ports.store.acquire(
            run_id, owner=owner, now=now, lease_until=now + left + options.lease_margin,
            code_version=code_version, due_is_near=due_is_near,
        )  # fmt: skip
        match answer:
            case Acquired(run):
                return Lease(run, ends - options.reserve_of(left))
            case NotRunnable(run) if run.deleting:
                if start is None:
                    raise RunGone(run_id)
                message = f'run "{run_id}" is being deleted, and begins anew once it is gone'
                raise StoreUnavailable(message)
            case NotRunnable(run):
                owes = run.outbox is not None or (run.ended and run.workflow.startswith(PREFIX_OF_ENTITIES))
                return run if owes or run.successor is not None else None
            case Missing():
                if start is None:
                    raise RunGone(run_id)
                create(ports, run_id, start)
                due_is_near = True
            case Held():
                if ports.store.announce(run_id, now=ports.clock.now()):
                    return None
    message = f'run "{run_id}" is taken and released by others all the time; this wake is tried again'
    raise StoreUnavailable(message)


def load(ports: Ports, run: Run, cache: HistoryCache, options: EngineOptions) -> tuple[Run, Loaded]:
    """Loads history and mailbox; after a take-over, fences what the lost epochs may still write."""
    cached = cache.take(run)
    pages = pages_of(ports.store, run.id, mailbox_only=cached is not None)
    entries = (
        list(cached.entries) if cached is not None else list(unpacked(item for page in pages for item in page.entries))
    )
    if any(entry.epoch > run.epoch for entry in entries):
        raise Fenced(run.id, run.epoch)
    if run.taken_over:
        run = fencing.fence(ports, run, entries)
    elif cached is None:
        run = fencing.forget_old(ports, run, entries, kept=options.fences_kept)
    loaded = Loaded(
        entries=sorted(counting_entries(run, entries), key=lambda entry: entry.order),
        messages=[message for page in pages for message in page.messages],
        payloads=cached.payloads if cached is not None else {k: v for page in pages for k, v in page.payloads.items()},
        unreadable=next((page.unreadable for page in pages if page.unreadable is not None), None),
    )
    return run, replace(loaded, buried=_buried(ports, run, loaded.messages, loaded.consumed))


def load_messages(ports: Ports, run: Run) -> Iterable[StoredMessage]:
    """The mailbox as it is now, without what entries have consumed that are gone."""
    messages = [message for page in pages_of(ports.store, run.id, mailbox_only=True) for message in page.messages]
    buried = _buried(ports, run, messages, frozenset())
    return [message for message in messages if message.id not in buried]


def _buried(ports: Ports, run: Run, messages: Iterable[StoredMessage], consumed: frozenset[str]) -> frozenset[str]:
    unknown = [message.id for message in messages if message.id not in consumed]
    if not run.pruned or not unknown:
        return frozenset()
    return frozenset(ports.store.buried(run.lineage or run.id, unknown))


def dead_turns(loaded: Loaded, epoch: int, clean_epoch: int, released_epoch: int) -> int:
    """How many turns in a row, up to the last, ended without a word and without a result.

    Nothing counts them while they die; it follows from the epochs: the last that was released, in order or after a
    failure, or that left a result.
    """
    newest_result = max((entry.epoch for entry in loaded.entries if "@" not in entry.mark), default=0)
    return epoch - 1 - max(clean_epoch, released_epoch, newest_result)
