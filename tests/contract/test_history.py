"""Entries and messages: written under their conditions, loaded in pages, deleted under the same conditions."""

from dataclasses import replace
from typing import Any

import pytest

from durable.errors import ErrorInfo, Fenced, LimitExceeded
from durable.ports import Store
from tests.contract.builders import NOW, a_message, an_entry, created, entries, messages, pages

HOSTILE = [
    "a%2Fb",
    "charge#2",
    "poll[12]/fetch",
    "日本語",
    "m#x",
    "h#x",
    "meta",
    "~".join("ab").replace("~", "%7E"),
    "'; --",
]


def test_every_field_of_an_entry_is_kept(store: Store) -> None:
    entry = an_entry(
        "poll[3]/charge#2", mark="@1", epoch=189_388_800_001, n=12, fn="shop.charge", branches="a,b",
        value='{"x": "ü"}', error=ErrorInfo(type="E", message="m", data=[1]), failure="timeout", attempts=3,
        started_at=NOW - 0.125, retry_at=NOW + 1e-6, input_digest="d", messages=(a_message(), a_message("m-2")),
    )  # fmt: skip
    store.put_entry("run-1", entry)
    assert entries(store) == [entry]


def test_carried_entries_come_with_the_one_that_carries_them(store: Store) -> None:
    carried = (an_entry("glance", value="1"), an_entry("poll[1]/glance", mark="@1", n=2, value="x" * 5000))
    entry = an_entry("charge", n=3, carried=carried)
    store.put_entry("run-1", entry)
    assert entries(store) == [entry]


def test_carried_values_count_against_the_limit(store: Store) -> None:
    large = an_entry("glance", value="x" * 405_000)
    with pytest.raises(LimitExceeded, match='"glance"'):
        store.put_entry("run-1", an_entry("charge", n=2, carried=(large,)))
    assert entries(store) == []


def test_the_value_none_is_not_the_text_null(store: Store) -> None:
    none, null = an_entry("a"), an_entry("b", n=2, value="null")
    store.put_entry("run-1", none)
    store.put_entry("run-1", null)
    assert entries(store) == [none, null]


@pytest.mark.parametrize("mark", ["", "?1", "@2", "~30", "!", "!@2", "^"])
@pytest.mark.parametrize("location", HOSTILE)
def test_locations_and_marks_come_back_as_they_were(store: Store, location: str, mark: str) -> None:
    entry = an_entry(location, mark=mark)
    store.put_entry("run-1", entry)
    assert entries(store) == [entry]


def test_the_same_write_may_be_repeated(store: Store) -> None:
    store.put_entry("run-1", an_entry(value="1"))
    store.put_entry("run-1", an_entry(value="1"))
    assert entries(store) == [an_entry(value="1")]


def test_a_newer_epoch_writes_over_an_older_one(store: Store) -> None:
    store.put_entry("run-1", an_entry(epoch=1, value="1"))
    store.put_entry("run-1", an_entry(epoch=2, value="2"))
    assert [entry.value for entry in entries(store)] == ["2"]


def test_an_older_epoch_is_fenced(store: Store) -> None:
    store.put_entry("run-1", an_entry(epoch=2, value="2"))
    with pytest.raises(Fenced):
        store.put_entry("run-1", an_entry(epoch=1, value="1"))
    assert [entry.value for entry in entries(store)] == ["2"]


def test_a_load_is_several_reads_in_key_order(store: Store) -> None:
    created(store)
    for n in range(5):
        store.put_entry("run-1", an_entry(f"s{n}", n=n + 1))
    store.put_payload("run-1", "input", '"in"', epoch=0)
    store.put_message("run-1", a_message("m-1"))
    store.put_message("run-1", a_message("m-2"))
    read = pages(store)
    assert len(read) >= 3
    assert [entry.location for page in read for entry in page.entries] == [f"s{n}" for n in range(5)]
    assert [message.id for page in read for message in page.messages] == ["m-1", "m-2"]
    assert [dict(page.payloads) for page in read if page.payloads] == [{"input": '"in"'}]


def test_a_page_sees_what_was_written_after_the_page_before_it(store: Store) -> None:
    for n in range(3):
        store.put_entry("run-1", an_entry(f"s{n}", n=n + 1))
    store.put_message("run-1", a_message())
    first = store.load("run-1")
    store.put_entry("run-1", an_entry("a", n=4))
    store.put_entry("run-1", an_entry("z", n=5))
    second = store.load("run-1", cursor=first.cursor)
    assert [entry.location for entry in (*first.entries, *second.entries)] == ["s0", "s1", "s2", "z"]


def test_a_load_of_nothing_is_an_empty_page(store: Store) -> None:
    assert (entries(store), messages(store)) == ([], [])


def test_runs_do_not_see_one_another(store: Store) -> None:
    store.put_entry("run-1", an_entry())
    store.put_message("run-1", a_message())
    assert (entries(store, "run-10"), messages(store, "run-10")) == ([], [])


def test_the_mailbox_can_be_read_alone(store: Store) -> None:
    store.put_entry("run-1", an_entry())
    for n in range(4):
        store.put_message("run-1", a_message(f"m-{n}"))
    read = pages(store, mailbox_only=True)
    assert [message.id for page in read for message in page.messages] == [f"m-{n}" for n in range(4)]
    assert not any(page.entries for page in read)


def test_every_field_of_a_message_is_kept(store: Store) -> None:
    message = a_message("!~" * 128, kind="update", sequence="0001", arrived_at=NOW + 0.001, body='"ü"')
    assert store.put_message("run-1", message)
    assert messages(store) == [message]


def test_a_message_is_put_once(store: Store) -> None:
    assert store.put_message("run-1", a_message(body="1"))
    assert not store.put_message("run-1", a_message(body="2", arrived_at=NOW + 9))
    assert messages(store) == [a_message(body="1")]


@pytest.mark.parametrize("message_id", ["m#", "h#a", "meta", "run-1:charge:5:1", "a/b?c@d~e%2F", "~" * 256])
def test_hostile_message_ids_stay_in_the_mailbox(store: Store, message_id: str) -> None:
    created(store)
    store.put_message("run-1", a_message(message_id))
    assert [message.id for message in messages(store)] == [message_id]
    assert entries(store) == []


@pytest.mark.parametrize("count", [0, 1, 2, 26, 60])
def test_consumed_messages_are_deleted_however_many(store: Store, count: int) -> None:
    for n in range(count):
        store.put_message("run-1", a_message(f"m-{n:02}"))
    store.put_message("run-1", a_message("stays"))
    consumed = [f"m-{n:02}" for n in range(count)]
    store.delete_messages("run-1", [*consumed, *consumed[:1]])
    store.delete_messages("run-1", consumed)
    assert [message.id for message in messages(store)] == ["stays"]


def test_entries_are_deleted_unless_they_are_newer(store: Store) -> None:
    for n, (location, epoch) in enumerate([("old", 1), ("mine", 2), ("newer", 3)]):
        store.put_entry("run-1", an_entry(location, epoch=epoch, n=n + 1))
    store.put_entry("run-1", an_entry("old", mark="@1", n=4))
    store.delete_entries("run-1", ["old", "mine", "newer", "absent"], epoch=2)
    assert [entry.key for entry in entries(store)] == ["newer", "old@1"]


@pytest.mark.parametrize("value", ["x" * 4096, "x" * 4097, "é" * 2049, "€uro " * 37_000])
def test_large_values_come_back_as_they_were(store: Store, value: str) -> None:
    store.put_entry("run-1", an_entry(value=value, messages=(a_message(body=value),)))
    store.put_message("run-1", a_message(body=value))
    assert [entry.value for entry in entries(store)] == [value]
    assert [message.body for message in messages(store)] == [value]


@pytest.mark.parametrize("size", [256 * 1024 + 1, 405_000])
def test_a_value_over_the_limit_is_refused_before_the_request(store: Store, size: int) -> None:
    with pytest.raises(LimitExceeded, match=r'the result of "charge" is .* bytes; the limit is'):
        store.put_entry("run-1", an_entry(value="x" * size))
    with pytest.raises(LimitExceeded, match='message "approve" is'):
        store.put_message("run-1", a_message(body="x" * size))
    assert (entries(store), messages(store)) == ([], [])


def test_messages_that_do_not_fit_into_one_entry_are_refused(store: Store) -> None:
    incompressible = [f"{(n * 2_654_435_761) % (1 << 32):08x}" for n in range(30_000)]
    batch = tuple(a_message(f"m-{n}", body="".join(incompressible[n::4])) for n in range(4))
    entry = an_entry(messages=tuple(replace(message, id=f"{message.id}-{n}") for message in batch for n in range(4)))
    with pytest.raises(LimitExceeded):
        store.put_entry("run-1", entry)
    assert entries(store) == []


@pytest.mark.parametrize("what", ["entry", "message"])
def test_a_key_that_dynamodb_would_refuse_is_refused(store: Store, what: str) -> None:
    def put() -> Any:
        if what == "entry":
            return store.put_entry("run-1", an_entry("x" * 1023))
        return store.put_message("run-1", a_message("x" * 1023))

    with pytest.raises(LimitExceeded):
        put()
