"""Which of the SDK's errors mean: later, perhaps."""

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from durable.adapters.errors import translated
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
