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
from durable.ports import Acquired, Created, Settled
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
)
from tests.contract.worlds import TEMPLATE

pytestmark = pytest.mark.moto
REGION = "eu-central-1"


class Line:
    """The line to the emulator, which can be cut after the next request."""

    def __init__(self, stubber: BotocoreStubber) -> None:
        self._stubber = stubber
        self.cut = False

    def __call__(self, event_name: str, request: Any, **_: Any) -> Any:
        reply = self._stubber(event_name, request)
        if self.cut:
            self.cut = False
            raise ReadTimeoutError(endpoint_url=request.url)
        return reply


class Cut:
    def __init__(self, store: DynamoStore, line: Line) -> None:
        self.store = store
        self._line = line

    def twice(self, perform: Callable[[], Any]) -> Any:
        """Performs with the reply lost, then once more."""
        self._line.cut = True
        with pytest.raises(StoreUnavailable):
            perform()
        return perform()


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


def test_a_termination(cut: Cut) -> None:
    run = created(cut.store)
    ended = cut.twice(lambda: cut.store.terminate("run-1", now=NOW, reason="asked to"))
    assert (ended.status, ended.epoch) == ("cancelled", run.epoch + 1)
