"""A run is created once, whoever asks and however often."""

from dataclasses import replace

import pytest

from durable.errors import LimitExceeded
from durable.model.run import Carried, Cut, Run, Wait
from durable.ports import Created, Exists, KeyTaken, Store
from tests.contract.builders import NOW, a_run, created, entries

INPUT = '{"order": "42"}'


def test_a_created_run_reads_as_it_was_given(store: Store) -> None:
    run = created(store)
    assert store.get("run-1") == run


def test_every_field_of_a_run_is_kept(store: Store) -> None:
    run = a_run(
        input='{"a": "ü"}', input_digest="abc", tags=("shop", "größe:xl"), parent="p", lineage="l",
        waits=(Wait(digest="d1", deadline=NOW + 0.125), Wait(digest="d2", deadline=None)), fences={7: 0, 8: 3},
        waiting_for=("signal:approve",), reason="because", pruned=True,
        floors={9: 4}, cuts=(Cut(7, 1, 8), Cut(9, 5, 9)), carries=Carried("old", ("m-1",)), deadline=NOW + 0.5,
        attributes={"n": 1, "x": 0.5, "s": "ü", "yes": True, "no": False}, successor="run-1~2", ending="failed",
        cancel_requested="compensate", failed_at=("a", "b[2]/c"),
    )  # fmt: skip
    store.create(run)
    assert store.get("run-1") == run


def test_an_unknown_run_is_none(store: Store) -> None:
    assert store.get("nobody") is None


def test_the_same_writer_recognises_its_own_success_after_a_lost_reply(store: Store) -> None:
    run = created(store)
    assert store.create(run) == Created(run)


def test_another_writer_is_told_which_run_has_the_id(store: Store) -> None:
    run = created(store)
    assert store.create(replace(run, writer="another", input='"other"')) == Exists(run)


def test_an_input_stored_apart_comes_with_the_run(store: Store) -> None:
    run = a_run(input_stored=True)
    assert store.create(run, input=INPUT) == Created(run)
    assert store.get_payload("run-1", "input") == INPUT
    assert store.load("run-1").payloads == {"input": INPUT}


def test_a_lost_reply_with_input_and_key_is_recognised(store: Store) -> None:
    run = a_run(input_stored=True)
    store.create(run, input=INPUT, idempotency_key="order-42")
    assert store.create(run, input=INPUT, idempotency_key="order-42") == Created(run)


def test_a_taken_id_keeps_its_input(store: Store) -> None:
    run = a_run(input_stored=True)
    store.create(run, input=INPUT)
    assert store.create(replace(run, writer="another"), input='"other"') == Exists(run)
    assert store.get_payload("run-1", "input") == INPUT


def test_a_taken_key_names_the_run_that_it_started_and_creates_nothing(store: Store) -> None:
    store.create(a_run("run-1"), idempotency_key="order-42")
    assert store.create(a_run("run-2"), idempotency_key="order-42", input=INPUT) == KeyTaken("run-1")
    assert store.get("run-2") is None
    assert store.get_payload("run-2", "input") is None


def test_a_taken_key_outranks_a_taken_id(store: Store) -> None:
    store.create(a_run("run-1"), idempotency_key="order-42")
    created(store, "run-2")
    another = replace(a_run("run-2"), writer="another")
    assert store.create(another, idempotency_key="order-42") == KeyTaken("run-1")


def test_a_key_and_an_id_taken_by_the_same_run_are_that_run(store: Store) -> None:
    run = a_run()
    store.create(run, idempotency_key="order-42")
    assert store.create(replace(run, writer="another"), idempotency_key="order-42") == Exists(run)


def test_a_taken_id_leaves_the_key_free(store: Store) -> None:
    run = created(store)
    assert store.create(replace(run, writer="another"), idempotency_key="order-42") == Exists(run)
    other = a_run("run-2")
    assert store.create(other, idempotency_key="order-42") == Created(other)


@pytest.mark.parametrize("size", [256 * 1024 + 1, 405 * 1024])
def test_an_input_over_the_limit_is_refused_before_anything_is_stored(store: Store, size: int) -> None:
    with pytest.raises(LimitExceeded, match=r"the input is .* bytes"):
        store.create(a_run(input_stored=True), input="x" * size)
    assert store.get("run-1") is None


def test_an_input_of_a_quarter_megabyte_is_kept(store: Store) -> None:
    text = "é" * (128 * 1024)
    store.create(a_run(input_stored=True), input=text)
    assert store.get_payload("run-1", "input") == text


def test_an_idempotency_key_over_the_limit_is_refused(store: Store) -> None:
    with pytest.raises(LimitExceeded):
        store.create(a_run(), idempotency_key="k" * 257)


@pytest.mark.parametrize("run_id", ["a" * 128, "A.b_c:d@e=f+g-h", "0", "run.meta", "=.:@"])
@pytest.mark.parametrize("key", ["meta", "run#run-1", "ключ", " ", "a#b/c?d%e"])
def test_hostile_ids_and_keys_meet_nobody_else(store: Store, run_id: str, key: str) -> None:
    run = a_run(run_id)
    assert store.create(run, idempotency_key=key) == Created(run)
    assert store.get(run_id) == run
    assert entries(store, run_id) == []
    assert store.create(a_run("other"), idempotency_key=key) == KeyTaken(run_id)


def test_a_payload_is_kept_for_each_epoch(store: Store) -> None:
    run: Run = created(store)
    store.put_payload(run.id, "output", '"zombie"', epoch=5)
    store.put_payload(run.id, "output", '"owner"', epoch=6)
    assert store.get_payload(run.id, "output", epoch=5) == '"zombie"'
    assert store.get_payload(run.id, "output", epoch=6) == '"owner"'
    assert store.get_payload(run.id, "output", epoch=7) is None


def test_a_payload_over_the_limit_is_refused(store: Store) -> None:
    with pytest.raises(LimitExceeded):
        store.put_payload("run-1", "output", "x" * 405_000, epoch=1)
