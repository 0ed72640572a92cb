"""Every payload passes the forms that it is stored in: small ones as they are, large ones as references, sealed if asked."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from durable.adapters.memory import MemoryBlobs, MemoryStore
from durable.adapters.texts.ports import with_texts
from durable.adapters.texts.recent import RecentTexts
from durable.adapters.texts.store import TextStore
from durable.adapters.texts.wrapping import Wrapping
from durable.errors import ErrorInfo, LimitExceeded, PayloadUnreadable
from durable.model.entry import Compensation, Entry
from durable.model.envelope import Deliver, StartSpec, to_body
from durable.model.limits import PAYLOAD_BYTES, QUEUE_BYTES
from durable.model.message import StoredMessage
from durable.model.stored import Opened, Reference, Unreadable
from durable.ports import NoBlobs, Store
from durable.testing.interception import methods_of
from durable.testing.services import in_memory
from tests.sealed.sealing import KeyCodec

LARGE = '"' + "x" * PAYLOAD_BYTES + '"'

CARRIES_NOTHING = {
    "announce", "annotate", "blocked_runs", "buried", "bury", "clear_carries", "clear_outbox", "delete_entries",
    "delete_messages", "delete_run", "delete_subscription", "due_lanes", "due_runs", "empty_run", "expired_runs",
    "list_runs", "mark_for_deletion", "mark_pruned", "postpone_deletion", "read_lane", "record_cut", "record_fences",
    "record_floor", "release", "runs_needing_attention", "take_event", "watchers",
}  # fmt: skip
"""Methods of the store that neither take nor give a payload."""


def test_sec_07_a_new_method_of_the_store_says_whether_it_carries_payloads() -> None:
    passed_on = {name for name in methods_of(Store) if name not in vars(TextStore)}
    assert passed_on - CARRIES_NOTHING == set(), "let TextStore wrap what these carry, or add them to the list"
    assert set(methods_of(Store)) >= CARRIES_NOTHING


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"{next(self._numbers):026d}"


def wrapping(blobs: Any = None, codec: Any = None) -> Wrapping:
    return Wrapping(MemoryBlobs() if blobs is None else blobs, Numbers(), codec)


def test_a_small_text_is_the_same_object() -> None:
    text = '{"a": 1}'
    forms = wrapping(NoBlobs())
    assert forms.out(text, "r", "it") is text
    assert forms.read(text) is text


@pytest.mark.parametrize(("text", "apart"), [("x" * PAYLOAD_BYTES, False), ("ü" * (PAYLOAD_BYTES // 2) + "x", True)])
def test_pay_02_the_bytes_count_that_are_stored(text: str, apart: bool) -> None:
    stored = wrapping().out(text, "r", "it")
    assert stored.startswith("blob:") == apart


def test_a_large_text_is_a_reference_and_is_stored_once() -> None:
    blobs = MemoryBlobs()
    forms = wrapping(blobs)
    stored = forms.out(LARGE, "r", "it")
    assert stored == Reference(f"r/{1:026d}", len(LARGE)).to_text()
    read = wrapping(blobs).read(stored)
    assert read == LARGE
    assert isinstance(read, Opened)
    assert forms.out(read, "r", "it") == stored
    assert forms.out(stored, "r", "it") == stored
    assert blobs.keys == [f"r/{1:026d}"]


def test_what_goes_on_to_another_run_is_stored_anew() -> None:
    blobs = MemoryBlobs()
    forms = wrapping(blobs)
    stored = forms.out(LARGE, "r", "it")
    assert forms.out(stored, "r~2", "it").endswith(f":r~2/{2:026d}")
    blobs.delete("r/")
    assert wrapping(blobs).read(f"blob:{len(LARGE)}:r~2/{2:026d}") == LARGE


def test_a_sealed_text_tells_whom_it_belongs_to_and_is_sealed_once() -> None:
    codec = KeyCodec("k")
    forms = wrapping(codec=codec)
    stored = forms.out('"secret"', "run:1", "it")
    assert stored.startswith("sealed:")
    assert stored.endswith(":run:1")
    read = forms.read(stored)
    assert read == '"secret"'
    assert forms.out(read, "run:1", "it") is stored
    assert codec.sealed == 1
    assert forms.out(read, "run:2", "it").endswith(":run:2")


def test_sealed_and_then_apart() -> None:
    blobs = MemoryBlobs()
    forms = wrapping(blobs, KeyCodec("k"))
    text = "".join(f"{n:x}" for n in range(100_000))
    stored = forms.out(text, "r", "it")
    assert stored.startswith("blob:")
    assert wrapping(blobs, KeyCodec("k")).read(stored) == text
    assert isinstance(wrapping(blobs, KeyCodec("l")).read(stored), Unreadable)
    assert isinstance(wrapping(blobs).read(stored), Unreadable)


def test_without_a_bucket_a_large_text_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        LimitExceeded, match=r"the input is 262,146 bytes; the limit is 262,144 bytes\. .*DURABLE_BUCKET"
    ):
        wrapping(NoBlobs()).out(LARGE, "r", "the input")


@pytest.mark.parametrize(
    "stored", ["blob:x", "blob:x:r/1", "blob:3:r/1", "sealed:", "sealed:!:r", "sealed:AAAA:r", "blob:"]
)
def test_what_is_damaged_is_unreadable(stored: str) -> None:
    blobs = MemoryBlobs()
    blobs.put("r/1", b"not compressed")
    forms = wrapping(blobs, KeyCodec("k"))
    read = forms.read(stored)
    assert isinstance(read, Unreadable)
    assert read.reason
    with pytest.raises(PayloadUnreadable):
        forms.needed(stored)


@pytest.mark.parametrize("codec", [None, KeyCodec("k")])
@pytest.mark.parametrize(
    "value", ["blob:1:r/1", "sealed:x", "plain:1", "", "ü\x00", {"a": [1, None]}, [], 5, None, True]
)
def test_what_an_error_says_comes_back_whatever_it_looks_like(codec: Any, value: Any) -> None:
    forms = wrapping(codec=codec)
    assert forms.any_in(forms.any_out(value, "r")) == value


def entry(**facts: Any) -> Entry:
    return Entry(location="a", kind="step", epoch=1, n=1, at=1.0, **facts)


def incompressible(size: int, seed: int = 0) -> str:
    from random import Random  # noqa: PLC0415, TID251 - seeded

    return '"' + Random(seed).randbytes(size).hex()[: size - 2] + '"'


def test_pay_01_an_entry_that_is_larger_than_an_item_has_its_largest_texts_apart() -> None:
    store, blobs = MemoryStore(), MemoryBlobs()
    services = replace(in_memory(), store=store, blobs=blobs)
    ports = with_texts(services.ports)
    part = entry(value=incompressible(250_000, 1))
    whole = replace(
        entry(
            value=incompressible(240_000, 2),
            compensation=Compensation("m:f", incompressible(250_000, 3)),
            messages=tuple(
                StoredMessage(id=str(n), name="m", body=incompressible(100_000, n), arrived_at=1.0) for n in range(5)
            ),
            error=ErrorInfo(type="E", message="m"),
        ),
        location="b", n=2, carried=(part,),
    )  # fmt: skip
    ports.store.put_entry("r", whole)
    assert ports.store.load("r").entries == [whole]
    assert 1 < len(blobs.keys) < 8


def test_without_a_bucket_such_an_entry_is_refused_by_its_size() -> None:
    ports = with_texts(replace(in_memory(), blobs=NoBlobs()).ports)
    parts = tuple(replace(entry(value=incompressible(262_000, n)), n=n) for n in range(1, 4))
    whole = replace(entry(value=incompressible(262_000)), n=4, carried=parts)
    with pytest.raises(LimitExceeded, match=r'the result of "a" is [0-9,]+ bytes; the limit is 409,600 bytes'):
        ports.store.put_entry("r", whole)


@pytest.mark.parametrize("character", ['"', "\\", "x", "😀"])
def test_pay_02_a_message_with_a_start_fits_the_queue_whatever_is_escaped(character: str) -> None:
    services = in_memory()
    ports = with_texts(services.ports)
    text = character * (PAYLOAD_BYTES // len(character.encode()))
    start = StartSpec(workflow="w", version="1", input=text)
    ports.runs.send(Deliver(run_id="r", id="m", name="n", body=text, start=start))
    (sent,) = services.runs.pending
    assert len(sent.body.encode()) <= QUEUE_BYTES
    envelope = ports.texts.envelope(Deliver(**_parsed(sent.body)))
    assert isinstance(envelope, Deliver)
    assert envelope.start == start
    assert to_body(envelope)


def _parsed(body: str) -> dict[str, Any]:
    from durable.model.envelope import from_body  # noqa: PLC0415 - for this only

    parsed = from_body(body)
    assert isinstance(parsed, Deliver)
    return {name: getattr(parsed, name) for name in parsed.__dataclass_fields__ if name != "type"}


def test_what_was_not_asked_for_the_longest_is_let_go() -> None:
    recent = RecentTexts(limit=10)
    for key in "abc":
        recent.keep(key, key * 4)
        recent.get("a")
    assert [recent.get(key) for key in "abc"] == ["aaaa", None, "cccc"]
    recent.keep("d", "x" * 11)
    assert recent.get("d") is None
