"""Values as items of the table: nothing is left out, and the run record stays small."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from durable.adapters.dynamodb import attributes, items, keys
from durable.adapters.dynamodb.capacity import item_bytes
from durable.errors import ErrorInfo
from durable.model.entry import Compensation, Entry
from durable.model.location import escape
from durable.model.message import StoredMessage
from durable.model.run import Carried, Cut, Run, Settlement, Wait, retried

NOW = 1_796_000_000.123456
ULID = "01M8M6K3Q2ZPFNM5J1NXPYM52S"


def stored(item: items.Item) -> set[str]:
    return set(item) - {"pk", "sk", "listing", "created", "due_shard", "outcome", "attention"}


def filled(cls: type, /, **known: Any) -> dict[str, Any]:
    """A value other than the default for every field."""
    samples = {"str": "text", "int": 7, "float": NOW, "bool": True, "tuple[str, ...]": ("a", "b")}
    return {
        field.name: known.get(field.name, samples.get(str(field.type).removesuffix(" | None"), "unknown"))
        for field in fields(cls)
    }


MESSAGE = StoredMessage(**filled(StoredMessage, kind="update"))
ERROR = ErrorInfo(type="Declined", message="no", module="shop", data={"a": [1, None]})
RUN = Run(
    **filled(
        Run, status="blocked", waits=(Wait(digest="d", deadline=NOW),), fences={5: 0}, floors={6: 2}, error=ERROR,
        cuts=(Cut(5, 1, 6), Cut(7, 2, 9)), carries=Carried("old", ("m-1", "m-2")), ending="failed",
        cancel_requested="compensate", attributes={"n": 1, "x": 0.5, "s": "ü", "yes": True, "no": False},
        headers={"tenant": "größe"}, outbox="graceful",
    )
)  # fmt: skip
KNOWN: dict[str, Any] = {
    "location": "a/b#2", "mark": "@1", "kind": "wait", "failure": "timeout", "error": ERROR, "messages": (MESSAGE,),
    "compensation": Compensation("shop:refund", '{"args": ["ü"]}'),
}  # fmt: skip
CARRIED = Entry(**filled(Entry, **KNOWN, carried=()))
ENTRY = Entry(**filled(Entry, **KNOWN, carried=(CARRIED, replace(CARRIED, mark="", value="x" * 5000))))


def test_every_field_of_a_run_is_stored_and_read() -> None:
    item = items.run_item(RUN, 4)
    assert stored(item) == {field.name for field in fields(Run)} - {"id"}
    assert items.read_run(item) == RUN


def test_every_field_of_an_entry_is_stored_and_read() -> None:
    item = items.entry_item("run-1", ENTRY)
    assert stored(item) | json.loads(item["facts"]["S"]).keys() == {field.name for field in fields(Entry)} - {
        "location",
        "mark",
    } | {"facts"}
    assert items.read_entry(item) == ENTRY


def test_every_field_of_a_message_is_stored_and_read() -> None:
    item = items.message_item("run-1", MESSAGE)
    assert stored(item) == {field.name for field in fields(StoredMessage)} - {"id"}
    assert items.read_message(item) == MESSAGE


def test_a_settlement_names_every_field_that_a_turn_decides() -> None:
    changed = items.settled_attributes("run-1", Settlement(status="suspended", at=NOW, started_at=NOW), 4)
    decided = {field.name for field in fields(Settlement)} - {"at"}
    assert decided <= changed.keys()
    assert changed.keys() - decided == {"updated_at", "finished_at", "due_shard", "outcome", "attention"}


def test_defaults_take_no_room() -> None:
    bare = Run(
        id="r", workflow="w", version="1", status="pending", created_at=NOW, epoch=1, born=1, clean_epoch=1, writer="t"
    )
    assert stored(items.run_item(bare, 4)) == {
        "workflow", "version", "status", "created_at", "epoch", "born", "clean_epoch", "writer", "wakes",
    }  # fmt: skip


def test_an_ordinary_run_record_stays_under_a_kilobyte() -> None:
    run = Run(
        id=f"order-{ULID}", workflow="fulfil_an_order", version="2", status="suspended", created_at=NOW,
        epoch=220_000_000_123, born=220_000_000_100, clean_epoch=220_000_000_122, writer=ULID,
        input='{"order": "' + "x" * 180 + '"}', input_digest="d" * 32, tags=("shop", "region:eu"),
        started_at=NOW, updated_at=NOW, lease_owner=ULID, lease_until=NOW, due_at=NOW, armed=NOW,
        waiting_for=("signal:approve", "signal:cancel"), waits=(Wait(digest="d" * 12, deadline=NOW),) * 2,
        reason='signal "approve" until 2026-12-30 10:00 UTC', code_version="$LATEST", python="3.13", deadline=NOW, attributes={"cents": 1200},
    )  # fmt: skip
    assert item_bytes(items.run_item(run, 4)) < 1024


@pytest.mark.parametrize("mark", ["", "?1", "@2", "~30", "!", "!@2", "^"])
@pytest.mark.parametrize("name", ["hello!", "2^10", "a@b", "really?!", "~", "plain"])
def test_a_name_is_not_taken_for_a_mark(name: str, mark: str) -> None:
    entry = replace(ENTRY, location=f"a/{escape(name)}#2", mark=mark)
    assert items.read_entry(items.entry_item("run-1", entry)) == entry
    assert items.read_kept(items.kept_item("run-1", entry)) == entry


def test_replies_expire_by_whole_seconds() -> None:
    assert items.reply_item("run-1", "m-1", "done", 12.25)["expires_at"] == {"N": "13"}


@pytest.mark.parametrize(("size", "kind"), [(4096, "S"), (4097, "B")])
def test_values_over_four_kilobytes_are_compressed(size: int, kind: str) -> None:
    item = items.entry_item("run-1", replace(ENTRY, value="x" * size))
    assert list(item["value"]) == [kind]


def test_creation_keys_sort_by_time_and_then_by_id() -> None:
    sorted_keys = [
        keys.created_key(NOW, "z"),
        keys.created_key(NOW + 0.000_001, "a"),
        keys.created_key(NOW + 0.000_001, "b"),
        keys.created_key(10 * NOW, "a"),
    ]
    assert sorted_keys == sorted(sorted_keys)
    assert keys.created_at_of(sorted_keys[0]) == NOW


def test_runs_are_spread_over_the_shards_and_stay_there() -> None:
    assert {keys.shard_of(f"run-{n}", 4) for n in range(40)} == {0, 1, 2, 3}
    assert keys.shard_of("run-1", 4) == keys.shard_of("run-1", 4)


def test_neither_the_run_record_nor_what_is_published_is_loaded_with_the_history() -> None:
    low, high = keys.LOADED
    loaded = [keys.entry_key("a"), keys.payload_key("output", 7), keys.message_key("~" * 9), keys.message_key("!")]
    loaded.append(keys.kept_key(7, 1))
    assert all(low <= sk <= high for sk in loaded)
    apart = [keys.META, keys.state_key("a"), keys.chunk_key("a", "1")]
    assert not any(low <= sk <= high for sk in apart)


def test_the_wait_that_stands_for_a_retry_comes_back_as_it_was() -> None:
    waits = (retried(NOW, ()), retried(NOW, [Cut(7, 2, 9), Cut(5, 3, 8)]), Wait(digest="d", deadline=None))
    assert attributes.read_waits(attributes.waits(waits)) == waits
