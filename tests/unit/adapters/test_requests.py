"""Answers of DynamoDB that an emulator does not give: partial batches, conflicts, reasons."""

from collections.abc import Sequence
from typing import Any, cast

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from durable.adapters.dynamodb.requests import BATCH_TRIES, Failed, Requests
from durable.errors import StoreUnavailable

KEYS = [{"pk": {"S": "run#1"}, "sk": {"S": f"m#{n}"}} for n in range(2)]
ITEM = {"pk": {"S": "run#1"}, "sk": {"S": "meta"}}


class Service:
    """A client with scripted answers."""

    def __init__(self) -> None:
        config = Config(retries={"total_max_attempts": 1})
        self.client = botocore.session.get_session().create_client("dynamodb", "eu-central-1", config=config)
        self.stub = Stubber(self.client)
        self.stub.activate()
        self.pauses: list[float] = []
        self.requests = Requests(cast("Any", self.client), "table", self.pauses.append)

    def answers_batch(self, left: Sequence[Any]) -> None:
        unprocessed = {"table": [{"DeleteRequest": {"Key": key}} for key in left]} if left else {}
        self.stub.add_response("batch_write_item", {"UnprocessedItems": unprocessed})

    def cancels(self, *reasons: dict[str, Any]) -> None:
        self.stub.add_client_error(
            "transact_write_items",
            "TransactionCanceledException",
            http_status_code=400,
            modeled_fields={"CancellationReasons": list(reasons)},
        )


@pytest.fixture
def service() -> Service:
    return Service()


def test_what_a_batch_left_is_asked_for_again(service: Service) -> None:
    service.answers_batch(KEYS[1:])
    service.answers_batch([])
    service.requests.delete_all(KEYS)
    service.stub.assert_no_pending_responses()
    assert service.pauses == [0.05]


def test_a_batch_that_never_ends_is_unavailable(service: Service) -> None:
    for _ in range(BATCH_TRIES):
        service.answers_batch(KEYS[1:])
    with pytest.raises(StoreUnavailable, match="1 items were not written"):
        service.requests.delete_all(KEYS)
    assert service.pauses == [0.05, 0.1, 0.2, 0.4], "longer and longer, and not once more in vain"


def test_what_a_reading_batch_left_is_asked_for_again(service: Service) -> None:
    for found, left in ((KEYS[:1], KEYS[1:]), (KEYS[1:], [])):
        unprocessed = {"table": {"Keys": left}} if left else {}
        service.stub.add_response("batch_get_item", {"Responses": {"table": found}, "UnprocessedKeys": unprocessed})
    assert list(service.requests.get_all(KEYS, "pk, sk")) == KEYS
    service.stub.assert_no_pending_responses()


def test_a_reading_batch_that_never_ends_is_unavailable(service: Service) -> None:
    for _ in range(BATCH_TRIES):
        service.stub.add_response(
            "batch_get_item", {"Responses": {"table": []}, "UnprocessedKeys": {"table": {"Keys": KEYS[1:]}}}
        )
    with pytest.raises(StoreUnavailable, match="not read"):
        list(service.requests.get_all(KEYS, "sk"))


def test_reasons_of_a_transaction_are_read_one_by_one(service: Service) -> None:
    service.cancels(
        {"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": ITEM}, {"Code": "ConditionalCheckFailed"}
    )
    assert service.requests.transact({"Put": {"Item": ITEM}}) == [None, Failed(ITEM), Failed(None)]


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_conflict_is_unavailable_even_beside_a_failed_condition(service: Service, code: str) -> None:
    service.cancels({"Code": "ConditionalCheckFailed", "Item": ITEM}, {"Code": code})
    with pytest.raises(StoreUnavailable, match=code):
        service.requests.transact({"Put": {"Item": ITEM}})


def test_a_transaction_that_was_cancelled_without_a_reason_is_unavailable(service: Service) -> None:
    service.stub.add_client_error("transact_write_items", "TransactionCanceledException", http_status_code=400)
    with pytest.raises(StoreUnavailable, match="no stated reason"):
        service.requests.transact({"Put": {"Item": ITEM}})


def test_a_fault_of_ours_in_a_transaction_is_raised_as_it_is(service: Service) -> None:
    service.cancels({"Code": "ValidationError"})
    with pytest.raises(ClientError, match="TransactionCanceled"):
        service.requests.transact({"Put": {"Item": ITEM}})


def test_an_answer_without_a_condition_failure_is_no_answer(service: Service) -> None:
    service.stub.add_client_error("put_item", "AccessDeniedException", http_status_code=400)
    with pytest.raises(ClientError, match="AccessDenied"):
        service.requests.put(ITEM)
