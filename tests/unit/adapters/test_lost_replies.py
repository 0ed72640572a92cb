"""A request whose reply is lost has had its effect; the caller's repetition is recognised as the same intention."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber

from durable.adapters.dynamodb.store import DynamoStore
from durable.errors import StoreUnavailable
from durable.local.provision import provision
from durable.model.run import Cut as HistoryCut
from durable.ports import Acquired, Chunk, Created, Settled
from tests.contract.builders import (
    NOW,
    a_message,
    a_run,
    acquire,
    an_entry,
    created,
    entries,
    messages,
    owned,
    settle,
    settlement,
)
from tests.contract.worlds import TEMPLATE

pytestmark = pytest.mark.moto
REGION = "eu-central-1"


class Line:
    """The line to the emulator, which can be cut after so many more requests."""

    def __init__(self, stubber: BotocoreStubber) -> None:
        self._stubber = stubber
        self.requests_left: int | None = None

    def __call__(self, event_name: str, request: Any, **_: Any) -> Any:
        reply = self._stubber(event_name, request)
        if self.requests_left is None:
            return reply
        self.requests_left -= 1
        if self.requests_left < 0:
            self.requests_left = None
            raise ReadTimeoutError(endpoint_url=request.url)
        return reply


class Cut:
    def __init__(self, store: DynamoStore, line: Line) -> None:
        self.store = store
        self._line = line

    def twice(self, perform: Callable[[], Any], *, after: int = 0) -> Any:
        """Performs with the reply of one request lost, then once more."""
        self.after(after)
        with pytest.raises(StoreUnavailable):
            perform()
        self._line.requests_left = None
        return perform()

    def after(self, requests: int) -> None:
        """Loses the reply of the request that comes after so many others."""
        self._line.requests_left = requests


@pytest.fixture(scope="module")
def emulator() -> Iterator[tuple[Any, str]]:
    with mock_aws():
        table = provision(TEMPLATE, stack="lost-replies", region=REGION).table
        config = Config(retries={"total_max_attempts": 1})
        yield botocore.session.get_session().create_client("dynamodb", REGION, config=config), table


@pytest.fixture
def cut(emulator: tuple[Any, str], request: pytest.FixtureRequest) -> Iterator[Cut]:
    from moto.core.models import botocore_stubber  # noqa: PLC0415

    client, table = emulator
    line = Line(botocore_stubber)
    client.meta.events.register_first("before-send.dynamodb", line)
    yield Cut(DynamoStore(cast("Any", client), table), line)
    client.meta.events.unregister("before-send.dynamodb", line)
    for item in client.scan(TableName=table)["Items"]:
        client.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})


def test_a_creation(cut: Cut) -> None:
    run = a_run()
    assert cut.twice(lambda: cut.store.create(run)) == Created(run)


def test_a_creation_in_a_transaction(cut: Cut) -> None:
    run = a_run(input_stored=True)
    assert cut.twice(lambda: cut.store.create(run, input='"in"', idempotency_key="key")) == Created(run)


def test_an_acquisition(cut: Cut) -> None:
    run = created(cut.store)
    answer = cut.twice(lambda: acquire(cut.store))
    assert isinstance(answer, Acquired)
    assert answer.run.epoch == run.epoch + 1


def test_an_entry(cut: Cut) -> None:
    cut.twice(lambda: cut.store.put_entry("run-1", an_entry()))
    assert entries(cut.store) == [an_entry()]


def test_a_message(cut: Cut) -> None:
    assert not cut.twice(lambda: cut.store.put_message("run-1", a_message()))
    assert messages(cut.store) == [a_message()]


def test_a_settle(cut: Cut) -> None:
    created(cut.store)
    mine = owned(cut.store)
    assert cut.twice(lambda: settle(cut.store, mine, "completed")) == Settled()


def test_a_run_continued_as_another(cut: Cut) -> None:
    created(cut.store)
    mine = owned(cut.store)
    successor = a_run("run-1~2", input_stored=True)

    def go_on() -> Any:
        return cut.store.continue_as_new(
            "run-1", epoch=mine.epoch, wakes=0, settlement=settlement("completed"), successor=successor, input='"in"'
        )

    assert cut.twice(go_on) == Settled()
    assert cut.store.get("run-1~2") == successor


def test_a_reopening(cut: Cut) -> None:
    run = created(cut.store)
    settle(cut.store, owned(cut.store), "failed")
    answer = cut.twice(lambda: cut.store.reopen("run-1", owner="mender", now=NOW + 9, lease_until=NOW + 99))
    assert isinstance(answer, Acquired)
    assert answer.run.epoch == run.epoch + 2


@pytest.mark.parametrize(("unburied", "after"), [([], 0), (["m-1"], 0), (["m-1"], 1)])
def test_a_cut(cut: Cut, unburied: list[str], after: int) -> None:
    created(cut.store)
    mine = owned(cut.store)
    taken_back = HistoryCut(mine.epoch, 1, mine.epoch)
    cut.store.bury("run-1", ["m-1"])
    cut.twice(lambda: cut.store.record_cut("run-1", epoch=mine.epoch, cut=taken_back, unburied=unburied), after=after)
    run = cut.store.get("run-1")
    assert run is not None
    assert run.cuts == (taken_back,)
    assert cut.store.buried("run-1", ["m-1"]) == ({"m-1"} - set(unburied))


def test_a_request_to_cancel(cut: Cut) -> None:
    created(cut.store)
    run = cut.twice(lambda: cut.store.request_cancel("run-1", mode="graceful", now=NOW))
    assert (run.cancel_requested, run.due_at) == ("graceful", NOW)


def test_a_chunk(cut: Cut) -> None:
    cut.twice(lambda: cut.store.append_stream("run-1", "tokens", "01", "text"))
    assert cut.store.read_stream("run-1", "tokens") == [Chunk("01", "text")]


@pytest.mark.parametrize("request_number", range(8))
def test_a_deletion_cut_short_anywhere_is_completed_by_the_next(cut: Cut, request_number: int) -> None:
    created(cut.store)
    cut.store.put_entry("run-1", an_entry())
    cut.store.put_reply("run-1", "m-1", "done", expires_at=NOW)
    cut.store.bury("run-1", ["m-1"])
    cut.after(request_number)
    with pytest.raises(StoreUnavailable):
        cut.store.delete_run("run-1")
    cut.store.delete_run("run-1")
    assert cut.store.get("run-1") is None
    assert (entries(cut.store), cut.store.get_reply("run-1", "m-1")) == ([], None)
    assert cut.store.buried("run-1", ["m-1"]) == set()


def test_a_termination(cut: Cut) -> None:
    run = created(cut.store)
    ended = cut.twice(lambda: cut.store.terminate("run-1", now=NOW, reason="asked to"))
    assert (ended.status, ended.epoch) == ("cancelled", run.epoch + 1)


def test_a_transaction_of_a_workflow(cut: Cut, emulator: tuple[Any, str]) -> None:
    client, _ = emulator
    client.create_table(
        TableName="stock", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "sku", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "sku", "AttributeType": "S"}],
    )  # fmt: skip
    created(cut.store)
    entry = an_entry("reserve", kind="transact", epoch=owned(cut.store).epoch)
    count = {
        "TableName": "stock",
        "Key": {"sku": "book"},
        "UpdateExpression": "ADD sold :one",
        "ExpressionAttributeValues": {":one": 1},
    }
    assert cut.twice(lambda: cut.store.transact("run-1", entry, [{"Update": count}])) is None
    assert client.get_item(TableName="stock", Key={"sku": {"S": "book"}})["Item"]["sold"] == {"N": "1"}
    client.delete_table(TableName="stock")
