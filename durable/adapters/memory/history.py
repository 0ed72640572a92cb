"""Histories in memory: what turns load and write, and what was taken back or pruned."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from durable.adapters.dynamodb import keys as layout
from durable.adapters.sizes import check_entry, check_payload
from durable.errors import Fenced
from durable.model.attributes import check_attributes
from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.ports import Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.memory.partition import Table
    from durable.adapters.memory.tables import MemoryTables
    from durable.model.attributes import Attributes
    from durable.model.run import Cut
    from durable.model.transaction import TransactItem
    from durable.ports import Payload, Refused


class History:
    """Reads and writes the items of runs, and what their records say about them."""

    def __init__(self, table: Table, page_size: int) -> None:
        self._table = table
        self._page_size = page_size

    def load(self, run_id: str, cursor: str | None, *, mailbox_only: bool) -> Page:
        """One page."""
        low, high = (layout.MESSAGES, layout.LOADED[1]) if mailbox_only else layout.LOADED
        with self._table.lock:
            partition = self._table.partition(run_id)
            start = bisect_left(partition.keys, low) if cursor is None else bisect_right(partition.keys, cursor)
            end = bisect_left(partition.keys, high)
            found = partition.keys[start : min(start + self._page_size, end)]
            items = {sk: partition.items[sk] for sk in found}
        entries = {sk: item for sk, item in items.items() if isinstance(item, Entry)}
        return Page(
            entries=[entry for sk, entry in entries.items() if sk.startswith(layout.ENTRIES)],
            kept=[entry for sk, entry in entries.items() if sk.startswith(layout.KEPT)],
            messages=[item for item in items.values() if isinstance(item, StoredMessage)],
            payloads={layout.payload_of(sk): item for sk, item in items.items() if isinstance(item, str)},
            cursor=found[-1] if start + len(found) < end else None,
        )

    def put_entry(self, run_id: str, entry: Entry) -> None:
        """Writes an entry, unless a newer epoch has written it."""
        check_entry(entry)
        sk = layout.entry_key(entry.key)
        with self._table.lock:
            partition = self._table.partition(run_id)
            old = partition.items.get(sk)
            if isinstance(old, Entry) and old.epoch > entry.epoch:
                raise Fenced(run_id, entry.epoch)
            partition.put(sk, entry)

    def transact(
        self, run_id: str, entry: Entry, items: Sequence[TransactItem], tables: MemoryTables
    ) -> Refused | None:
        """Writes an entry together with rows of the author's tables, once."""
        check_entry(entry)
        sk = layout.entry_key(entry.key)
        with self._table.lock:
            partition = self._table.partition(run_id)
            old = partition.items.get(sk)
            if isinstance(old, Entry) and old.order == entry.order:
                return None  # the reply to an earlier try was lost
            self._table.owned(run_id, entry.epoch)
            refused = tables.write_all(items)
            if refused is None:
                partition.put(sk, entry)
            return refused

    def keep_compensations(self, run_id: str, entries: Sequence[Entry]) -> None:
        """Keeps entries for a rollback."""
        for entry in entries:
            check_entry(entry)
        with self._table.lock:
            for entry in entries:
                self._table.partition(run_id).put(layout.kept_key(entry.epoch, entry.n), entry)

    def delete_entries(self, run_id: str, keys: Sequence[str], *, epoch: int) -> None:
        """Deletes entries, newer ones excepted."""
        with self._table.lock:
            partition = self._table.partition(run_id)
            for key in keys:
                sk = layout.entry_key(key)
                entry = partition.items.get(sk)
                if isinstance(entry, Entry) and entry.epoch <= epoch:
                    partition.delete(sk)

    def get_payload(self, run_id: str, payload: Payload, *, epoch: int) -> str | None:
        """A payload that is stored apart."""
        with self._table.lock:
            item = self._table.partition(run_id).items.get(layout.payload_key(payload, epoch))
        return item if isinstance(item, str) else None

    def put_payload(self, run_id: str, payload: Payload, text: str, *, epoch: int) -> None:
        """Stores a payload apart."""
        check_payload(f"the {payload}", text)
        with self._table.lock:
            self._table.partition(run_id).put(layout.payload_key(payload, epoch), text)

    def record_fences(self, run_id: str, *, epoch: int, fences: Mapping[int, int]) -> None:
        """Notes how much of lost epochs counts."""
        with self._table.lock:
            self._table.update(replace(self._table.owned(run_id, epoch), fences=dict(fences)))

    def record_floor(self, run_id: str, *, epoch: int, n: int) -> None:
        """Notes what the turn prunes of its own items."""
        with self._table.lock:
            self._table.update(replace(self._table.owned(run_id, epoch), floors={epoch: n}, pruned=True))

    def mark_pruned(self, run_id: str, *, epoch: int) -> None:
        """Notes that entries go."""
        with self._table.lock:
            self._table.update(replace(self._table.owned(run_id, epoch), pruned=True))

    def record_cut(self, run_id: str, *, epoch: int, cut: Cut, unburied: Sequence[str]) -> None:
        """Takes part of a history back."""
        with self._table.lock:
            run = self._table.owned(run_id, epoch)
            self._table.tombstones.get(run.lineage or run_id, set()).difference_update(unburied)
            self._table.update(replace(run, cuts=tuple(dict.fromkeys((*run.cuts, cut)))))

    def annotate(self, run_id: str, *, epoch: int, tags: tuple[str, ...] | None, attributes: Attributes | None) -> None:
        """Replaces tags and attributes."""
        checked = None if attributes is None else check_attributes(attributes)
        with self._table.lock:
            run = self._table.owned(run_id, epoch)
            self._table.update(
                replace(
                    run,
                    tags=run.tags if tags is None else tags,
                    attributes=run.attributes if checked is None else checked,
                )
            )

    def clear_carries(self, run_id: str, *, epoch: int) -> None:
        """Forgets the messages carried over."""
        with self._table.lock:
            self._table.update(replace(self._table.owned(run_id, epoch), carries=None))
