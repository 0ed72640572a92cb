"""What a run shows of itself while it goes on: values, streams, replies, tags and attributes."""

import pytest

from durable.errors import Fenced, InvalidName, LimitExceeded
from durable.ports import Chunk, Store
from tests.contract.builders import NOW, a_message, an_entry, created, entries, messages, owned, pages

HOSTILE = ["progress", "a#b", "a/b?c@d~e%2F", "ключ", "meta", "input"]


def test_a_value_is_published_and_replaced(store: Store) -> None:
    store.put_state("run-1", "progress", "0.5", epoch=5)
    store.put_state("run-1", "progress", "0.75", epoch=5)
    store.put_state("run-1", "progress", "1.0", epoch=6)
    assert store.get_state("run-1", "progress") == "1.0"
    assert (store.get_state("run-1", "other"), store.get_state("run-2", "progress")) == (None, None)


def test_an_older_epoch_publishes_nothing_over_a_newer_one(store: Store) -> None:
    store.put_state("run-1", "progress", "new", epoch=6)
    with pytest.raises(Fenced):
        store.put_state("run-1", "progress", "old", epoch=5)
    assert store.get_state("run-1", "progress") == "new"


def test_every_value_is_found_by_its_key(store: Store) -> None:
    created(store)
    for n, key in enumerate(HOSTILE):
        store.put_state("run-1", key, f"{n}" * 5000, epoch=1)
    assert store.states("run-1") == {key: f"{n}" * 5000 for n, key in enumerate(HOSTILE)}
    assert store.states("run-2") == {}


def test_turns_do_not_load_what_is_published(store: Store) -> None:
    run = created(store)
    store.put_state("run-1", "progress", "1", epoch=1)
    store.append_stream("run-1", "tokens", "01", "a")
    store.put_reply("run-1", "m-1", "done", expires_at=NOW)
    assert (entries(store), messages(store), len(pages(store))) == ([], [], 1)
    assert store.get("run-1") == run


@pytest.mark.parametrize("key", HOSTILE)
def test_a_stream_is_read_in_order_from_any_chunk_on(store: Store, key: str) -> None:
    chunks = [Chunk(f"{n:03}", f"text {n}") for n in range(7)]
    for chunk in reversed(chunks):
        store.append_stream("run-1", key, chunk.id, chunk.text)
    assert store.read_stream("run-1", key) == chunks
    assert store.read_stream("run-1", key, after="002") == chunks[3:]
    assert store.read_stream("run-1", key, after="002", limit=2) == chunks[3:5]
    assert store.read_stream("run-1", key, after="0025", limit=1) == chunks[3:4]
    assert store.read_stream("run-1", key, limit=3) == chunks[:3]
    assert store.read_stream("run-1", key, after="006") == []


def test_a_chunk_is_added_once(store: Store) -> None:
    store.append_stream("run-1", "tokens", "01", "first")
    store.append_stream("run-1", "tokens", "01", "again")
    assert store.read_stream("run-1", "tokens") == [Chunk("01", "first")]


def test_streams_do_not_meet(store: Store) -> None:
    store.append_stream("run-1", "a", "b#c", "1")
    store.append_stream("run-1", "a#b", "c", "2")
    store.append_stream("run-1", "ab", "c", "3")
    store.append_stream("run-10", "a", "c", "4")
    assert store.read_stream("run-1", "a") == [Chunk("b#c", "1")]
    assert store.read_stream("run-1", "a#b") == [Chunk("c", "2")]


def test_a_reply_is_kept_for_its_message(store: Store) -> None:
    created(store)
    assert store.get_reply("run-1", "m-1") is None
    store.put_reply("run-1", "m-1", '"ü"' * 5000, expires_at=NOW + 0.5)
    store.put_reply("run-1", "m-1", '"ü"' * 5000, expires_at=NOW + 0.5)
    assert store.get_reply("run-1", "m-1") == '"ü"' * 5000
    assert (store.get_reply("run-1", "m-2"), store.get_reply("run-2", "m-1")) == (None, None)


def test_values_over_the_limit_are_refused(store: Store) -> None:
    large = "x" * 405_000
    with pytest.raises(LimitExceeded, match='the state "progress"'):
        store.put_state("run-1", "progress", large, epoch=1)
    with pytest.raises(LimitExceeded, match='stream "tokens"'):
        store.append_stream("run-1", "tokens", "01", large)
    with pytest.raises(LimitExceeded, match='the reply to message "m-1"'):
        store.put_reply("run-1", "m-1", large, expires_at=NOW)
    with pytest.raises(LimitExceeded):
        store.put_state("run-1", "k" * 1023, "", epoch=1)
    assert (store.states("run-1"), store.read_stream("run-1", "tokens"), store.get_reply("run-1", "m-1")) == (
        {},
        [],
        None,
    )


def test_tags_and_attributes_are_replaced_each_for_itself(store: Store) -> None:
    created(store, tags=("shop",))
    epoch = owned(store).epoch

    def annotated(**changes: object) -> object:
        store.annotate("run-1", epoch=epoch, **({"tags": None, "attributes": None} | changes))  # type: ignore[arg-type]
        run = store.get("run-1")
        (row,) = store.list_runs("fulfil").runs
        assert run is not None
        assert (row.tags, row.attributes) == (run.tags, run.attributes)
        return run.tags, run.attributes

    assert annotated(attributes={"n": 1, "who": "ü"}) == (("shop",), {"n": 1, "who": "ü"})
    assert annotated(tags=("a", "b")) == (("a", "b"), {"n": 1, "who": "ü"})
    assert annotated(attributes={"paid": False, "x": 0.25}) == (("a", "b"), {"paid": False, "x": 0.25})
    assert annotated() == (("a", "b"), {"paid": False, "x": 0.25})
    assert annotated(tags=(), attributes={}) == ((), {})


@pytest.mark.parametrize(
    "attributes",
    [{f"n{n}": n for n in range(11)}, {"n": "x" * 300}, {"n": float("nan")}, {"n": 10**40}, {"": 1}],
)
def test_attributes_that_would_not_be_kept_are_refused(store: Store, attributes: dict[str, float]) -> None:
    created(store)
    mine = owned(store)
    with pytest.raises((LimitExceeded, InvalidName)):
        store.annotate("run-1", epoch=mine.epoch, tags=None, attributes=attributes)
    assert store.get("run-1") == mine


def test_a_value_is_not_taken_for_an_entry(store: Store) -> None:
    store.put_entry("run-1", an_entry("s#progress"))
    store.put_message("run-1", a_message("s#progress"))
    assert store.get_state("run-1", "progress") is None
