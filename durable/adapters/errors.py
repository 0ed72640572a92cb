"""What the SDK raises, as errors that callers know."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from botocore import exceptions as botocore_errors
from botocore.exceptions import ClientError
from urllib3.exceptions import HTTPError

from durable.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Generator

TRANSIENT: Final = frozenset({
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "InternalFailure",
    "InternalServerError",
    "KMS.ThrottlingException",
    "KmsThrottled",
    "LimitExceededException",
    "OperationAborted",
    "OverLimit",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceQuotaExceededException",
    "ServiceUnavailable",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionConflictException",
    "TransactionInProgressException",
})  # fmt: skip
"""Codes that say: later, perhaps. The request may or may not have had its effect."""

LOST: Final = (
    botocore_errors.ConnectionError,
    botocore_errors.HTTPClientError,
    # Bodies that are read as they come (S3): shorter than announced, or other bytes than their checksum says.
    botocore_errors.IncompleteReadError,
    botocore_errors.ChecksumError,
    botocore_errors.FlexibleChecksumError,
    HTTPError,  # botocore lets some of those below it through there, of TLS for one
)
"""The connection, or what came over it, broke."""

SERVER_ERROR: Final = 500


def code_of(error: ClientError) -> str:
    """The error code that the service gave; SQS puts the name that it had in its old protocol before some."""
    return error.response.get("Error", {}).get("Code", "").removeprefix("AWS.SimpleQueueService.")


def is_transient(error: ClientError) -> bool:
    """Whether the same request may succeed later."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code_of(error) in TRANSIENT or status >= SERVER_ERROR


@contextmanager
def translated(service: str) -> Generator[None]:
    """Raises `StoreUnavailable` for what may pass by itself; any other error of the SDK is raised as it is."""
    try:
        yield
    except ClientError as error:
        if not is_transient(error):
            raise
        raise StoreUnavailable(f"{service}: {error}") from error
    except LOST as error:
        raise StoreUnavailable(f"{service}: {error}") from error
