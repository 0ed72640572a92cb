"""The ways in which AWS fails: each as a client sees it, with the effect that it leaves behind."""

import json
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError
from urllib3.exceptions import ProtocolError, SSLError
from urllib3.exceptions import ReadTimeoutError as ReadTimeout

from durable.adapters.dynamodb.requests import BATCH_TRIES
from tests.adapters.botocore_faults import Fault, Perform, Raw, Request, refusal, reply, result

Happen = Callable[[Request, Perform], AWSResponse]

LOAD = {
    "dynamodb": ("ProvisionedThroughputExceededException", 400),
    "sqs": ("RequestThrottled", 403),
    "scheduler": ("ThrottlingException", 429),
    "s3": ("SlowDown", 503),
    "secretsmanager": ("ThrottlingException", 400),
}
"""How each service says that it is asked too often."""

OLD_NAMES = "AWS.SimpleQueueService."

WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
TRANSACTION = frozenset({"TransactWriteItems"})
BATCH = frozenset({"BatchWriteItem"})
READ_BATCH = frozenset({"BatchGetItem"})


def throttle(request: Request, perform: Perform) -> AWSResponse:
    return refusal(request, *LOAD[request.service])


def refuse(code: str, status: int = 400, *, once: str = "") -> Happen:
    """Says no, and has done nothing."""
    return lambda request, _: refusal(request, code, status, once=once)


def refuse_afterwards(request: Request, perform: Perform) -> AWSResponse:
    perform()
    return refusal(request, "InternalServerError", 500)


def be_away(request: Request, perform: Perform) -> AWSResponse:
    """What stands before the service speaks, in its own words."""
    return reply(request, 503, b"<html><body>Service Unavailable</body></html>")


def lose(error: Callable[..., Exception], *, after: bool) -> Happen:
    """The request never arrives, or its reply does not."""

    def happen(request: Request, perform: Perform) -> AWSResponse:
        if after:
            perform()
        raise error(endpoint_url=request.url)

    return happen


def cancel(code: str) -> Happen:
    """The transaction is cancelled because of its first item."""

    def happen(request: Request, perform: Perform) -> AWSResponse:
        reasons = [{"Code": "None"} for _ in request.body["TransactItems"]]
        reasons[0] = {"Code": code, "Message": "made to fail"}
        return refusal(request, "TransactionCanceledException", CancellationReasons=reasons)

    return happen


def write_half(request: Request, perform: Perform) -> AWSResponse:
    ((table, writes),) = request.body["RequestItems"].items()
    half = len(writes) // 2
    if half:
        perform({**request.body, "RequestItems": {table: writes[:half]}})
    return result(request, UnprocessedItems={table: writes[half:]})


def write_half_and_lose_it(request: Request, perform: Perform) -> AWSResponse:
    write_half(request, perform)
    raise ReadTimeoutError(endpoint_url=request.url)


def write_none(request: Request, perform: Perform) -> AWSResponse:
    return result(request, UnprocessedItems=request.body["RequestItems"])


def read_half(request: Request, perform: Perform) -> AWSResponse:
    ((table, asked),) = request.body["RequestItems"].items()
    half = len(asked["Keys"]) // 2
    found: dict[str, Any] = {}
    if half:
        given = perform({**request.body, "RequestItems": {table: {**asked, "Keys": asked["Keys"][:half]}}})
        found = json.loads(b"".join(given.raw.stream()))["Responses"]
    return result(request, Responses=found, UnprocessedKeys={table: {**asked, "Keys": asked["Keys"][half:]}})


def read_none(request: Request, perform: Perform) -> AWSResponse:
    return result(request, Responses={}, UnprocessedKeys=request.body["RequestItems"])


def tear(error: Exception | None) -> Happen:
    """The reply is good and its body ends half-way, with an error or as if that were all."""

    def happen(request: Request, perform: Perform) -> AWSResponse:
        whole = perform()
        content = b"".join(whole.raw.stream())
        headers = {**whole.headers, "content-length": str(len(content))}
        return AWSResponse(request.url, whole.status_code, headers, Raw(content[: len(content) // 2], error))  # type: ignore[arg-type]

    return happen


def garble(request: Request, perform: Perform) -> AWSResponse:
    """The body has the right length and another byte than its checksum says."""
    whole = perform()
    content = bytearray(b"".join(whole.raw.stream()))
    content[0] ^= 1
    return AWSResponse(request.url, whole.status_code, whole.headers, Raw(bytes(content)))  # type: ignore[arg-type]


def delete_half(request: Request, perform: Perform) -> AWSResponse:
    """What was not deleted is told in a reply that is no error."""
    failed = b"<Error><Key>run-1/a</Key><Code>InternalError</Code><Message>made to fail</Message></Error>"
    return reply(request, 200, b"<DeleteResult>" + failed + b"</DeleteResult>")


ANYWHERE = (
    Fault("throttled", throttle),
    Fault("broken", refuse("InternalServerError", 500)),
    Fault("broken afterwards", refuse_afterwards),
    Fault("away", be_away),
    Fault("not reached", lose(EndpointConnectionError, after=False)),
    Fault("not reached in time", lose(ConnectTimeoutError, after=False)),
    Fault("no answer in time, nothing done", lose(ReadTimeoutError, after=False)),
    Fault("no answer in time, all done", lose(ReadTimeoutError, after=True)),
    Fault("cut off before", lose(ConnectionClosedError, after=False)),
    Fault("cut off afterwards", lose(ConnectionClosedError, after=True)),
)

FAULTS = {
    "dynamodb": (
        *ANYWHERE,
        Fault("throttled for the account", refuse("ThrottlingException")),
        Fault("in conflict with a transaction", refuse("TransactionConflictException"), WRITES, 1),
        Fault("in conflict with another Region", refuse("ReplicatedWriteConflictException"), WRITES),
        Fault("transaction in conflict", cancel("TransactionConflict"), TRANSACTION, 1),
        Fault("transaction throttled", cancel("ThrottlingError"), TRANSACTION, 1),
        Fault("transaction over its throughput", cancel("ProvisionedThroughputExceeded"), TRANSACTION, 1),
        Fault("transaction cancelled for no reason", refuse("TransactionCanceledException"), TRANSACTION, 1),
        Fault("transaction in progress", refuse("TransactionInProgressException"), TRANSACTION),
        Fault("half written", write_half, BATCH, BATCH_TRIES),
        Fault("half written, reply lost", write_half_and_lose_it, BATCH),
        Fault("nothing written", write_none, BATCH, BATCH_TRIES),
        Fault("half read", read_half, READ_BATCH, BATCH_TRIES),
        Fault("nothing read", read_none, READ_BATCH, BATCH_TRIES),
    ),
    "sqs": (
        *ANYWHERE,
        Fault(
            "throttled by its old name",
            refuse("RequestThrottled", 403, once=f"{OLD_NAMES}RequestThrottled"),
            attempts=1,
        ),
        Fault("too many in flight", refuse("OverLimit", 403), frozenset({"ReceiveMessage"}), 1),
        Fault("key service throttled", refuse("KmsThrottled"), frozenset({"SendMessage", "ReceiveMessage"}), 1),
    ),
    "scheduler": (
        *ANYWHERE,
        Fault("over its quota", refuse("ServiceQuotaExceededException", 402), attempts=1),
    ),
    "s3": (
        *ANYWHERE,
        Fault("in conflict", refuse("OperationAborted", 409), frozenset({"PutObject"}), 1),
        Fault("torn", tear(None), frozenset({"GetObject"}), 1),
        Fault("torn by a reset", tear(ProtocolError("reset")), frozenset({"GetObject"}), 1),
        Fault("torn by silence", tear(ReadTimeout(None, "url", "silence")), frozenset({"GetObject"}), 1),  # type: ignore[arg-type]
        Fault("torn by encryption", tear(SSLError("bad record")), frozenset({"GetObject"}), 1),
        Fault("garbled", garble, frozenset({"GetObject"}), 1),
        Fault("not all deleted", delete_half, frozenset({"DeleteObjects"}), 1),
    ),
    "secretsmanager": ANYWHERE,
}
"""By service."""
