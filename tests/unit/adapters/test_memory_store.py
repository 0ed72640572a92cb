"""The store in memory under threads: each request is atomic."""

from concurrent.futures import ThreadPoolExecutor

from durable.adapters.memory import MemoryStore
from durable.ports import Acquired, Created
from tests.contract.builders import NOW, a_message, a_run, acquire, created, owned

THREADS = 16


def test_one_of_many_acquirers_gets_the_lease() -> None:
    store = MemoryStore()
    created(store)
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda n: acquire(store, owner=f"owner-{n}"), range(THREADS)))
    assert sum(isinstance(answer, Acquired) for answer in answers) == 1


def test_one_of_many_creators_succeeds() -> None:
    store = MemoryStore()
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda n: store.create(a_run(writer=f"writer-{n}")), range(THREADS)))
    assert sum(isinstance(answer, Created) for answer in answers) == 1


def test_no_wake_is_lost() -> None:
    store = MemoryStore()
    created(store)
    owned(store)
    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(lambda _: store.announce("run-1", now=NOW), range(200)))
    run = store.get("run-1")
    assert run is not None
    assert run.wakes == 200


def test_a_deleted_run_is_gone_and_its_key_stays_spent() -> None:
    store = MemoryStore()
    store.create(a_run(), idempotency_key="key")
    store.put_message("run-1", a_message())
    store.delete_run("run-1")
    assert (store.get("run-1"), store.mailbox("run-1"), store.runs) == (None, [], [])
    assert not isinstance(store.create(a_run("run-2"), idempotency_key="key"), Created)
