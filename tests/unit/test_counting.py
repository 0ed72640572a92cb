"""The counter sees every request and prices what it changes."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from durable.adapters.dynamodb.store import DynamoStore
from durable.adapters.sqs import SqsRunQueue
from durable.aws import make_clients
from durable.local.provision import provision
from durable.model.envelope import Start
from durable.testing.counting import RequestCounter
from tests.contract.builders import a_message, a_run, acquire, an_entry, owned, settle
from tests.contract.worlds import TEMPLATE

pytestmark = pytest.mark.moto


class Counted:
    def __init__(self) -> None:
        clients = make_clients(region="eu-central-1")
        stood = provision(TEMPLATE, region="eu-central-1")
        self.store = DynamoStore(clients.dynamodb, stood.table)
        self.runs = SqsRunQueue(clients.sqs, stood.runs_queue_url)
        self.counter = RequestCounter(clients.dynamodb, stood.table, clients.sqs)

    def units(self) -> tuple[int, int, float]:
        """All write units, those of indexes among them, read units."""
        counts = self.counter.take()
        return counts.write_units, counts.index_units, counts.read_units


@pytest.fixture
def counted() -> Iterator[Counted]:
    with mock_aws():
        yield Counted()


def test_requests_are_counted_by_service_and_operation(counted: Counted) -> None:
    counted.store.create(a_run())
    counted.runs.send(Start(run_id="run-1", id="1"))
    counts = counted.counter.take()
    assert counts.requests == {"dynamodb.PutItem": 1, "sqs.SendMessage": 1}
    assert (counts.total, counted.counter.take().total) == (2, 0)


def test_what_is_asked_while_it_is_paused_is_not_counted(counted: Counted) -> None:
    with counted.counter.paused():
        counted.store.create(a_run())
    counts = counted.counter.take()
    assert (counts.total, counts.write_units) == (0, 0)


def test_writes_are_priced_with_their_indexes(counted: Counted) -> None:
    counted.store.create(a_run())
    assert counted.units() == (3, 2, 0)  # the record, its listing, its due time
    mine = owned(counted.store)
    assert counted.units() == (1, 0, 0)
    settle(counted.store, mine, due_at=mine.created_at + 60)
    assert counted.units() == (3, 2, 0)  # a key that changes is a delete and a write
    settle(counted.store, owned(counted.store), "failed")
    assert counted.units() == (5, 3, 0)  # the due time goes, the listing changes, attention comes


def test_a_failed_condition_costs_what_the_item_weighs(counted: Counted) -> None:
    counted.store.create(a_run())
    owned(counted.store)
    counted.units()
    acquire(counted.store, owner="owner-2")
    assert counted.units() == (1, 0, 0)


def test_a_transaction_costs_twice_as_much(counted: Counted) -> None:
    counted.store.create(a_run(input_stored=True), input='"x"', idempotency_key="key")
    assert counted.units() == (8, 2, 0)


def test_batches_are_priced_by_the_item(counted: Counted) -> None:
    for n in range(3):
        counted.store.put_message("run-1", a_message(f"m-{n}"))
    counted.counter.take()
    counted.store.delete_messages("run-1", ["m-0", "m-1", "m-2", "absent"])
    counts = counted.counter.take()
    assert (counts.total, counts.write_units) == (1, 4)


def test_large_items_cost_by_the_kilobyte_and_reads_by_four(counted: Counted) -> None:
    counted.store.put_entry("run-1", an_entry(value="x" * 2_900))
    counted.store.put_entry("run-1", an_entry("second", n=2, value="x" * 2_900))
    assert counted.units() == (6, 0, 0)
    counted.store.load("run-1")
    assert counted.units() == (0, 0, 2)
    counted.store.due_runs(before=1e12, limit=9)
    assert counted.units() == (0, 0, 2)  # four shards, half a unit each
