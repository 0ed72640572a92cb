"""Which of the SDK's errors mean: later, perhaps."""

from typing import Any

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker
from urllib3.exceptions import SSLError

from durable.adapters.errors import TRANSIENT, code_of, translated
from durable.errors import StoreUnavailable


def client_error(code: str, status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Put")  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "error",
    [
        client_error("ProvisionedThroughputExceededException"),
        client_error("ThrottlingException"),
        client_error("TransactionConflictException"),
        client_error("RequestThrottled"),
        client_error("AnythingElse", 503),
        exceptions.EndpointConnectionError(endpoint_url="u"),
        exceptions.ConnectTimeoutError(endpoint_url="u"),
        exceptions.ReadTimeoutError(endpoint_url="u"),
        exceptions.ConnectionClosedError(endpoint_url="u"),
        exceptions.HTTPClientError(error="reset"),
        exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2),
        exceptions.FlexibleChecksumError(error_msg="other bytes"),
        SSLError("bad record"),
    ],
    ids=str,
)
def test_what_may_pass_is_unavailable(error: Exception) -> None:
    with pytest.raises(StoreUnavailable, match=r"^DynamoDB: ") as raised, translated("DynamoDB"):
        raise error
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        client_error("AccessDeniedException"),
        client_error("ResourceNotFoundException"),
        client_error("ValidationException"),
        exceptions.NoCredentialsError(),
        ValueError("a fault of ours"),
    ],
    ids=str,
)
def test_what_stays_wrong_is_raised_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, translated("DynamoDB"):
        raise error
    assert raised.value is error


def test_whatever_the_sdk_tries_again_may_pass() -> None:
    checkers: list[Any] = [ThrottledRetryableChecker, TransientRetryableChecker]
    tried_again = {
        *checkers[0]._THROTTLED_ERROR_CODES,
        *checkers[1]._TRANSIENT_ERROR_CODES,
    }
    assert tried_again <= TRANSIENT


def test_sqs_is_understood_in_the_words_of_its_old_protocol() -> None:
    assert code_of(client_error("AWS.SimpleQueueService.RequestThrottled")) == "RequestThrottled"
    with pytest.raises(StoreUnavailable), translated("SQS"):
        raise client_error("AWS.SimpleQueueService.RequestThrottled", 403)
