"""Requests to one table; a failed condition is an answer here, not an exception."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from durable.adapters.errors import code_of, translated
from durable.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from types_boto3_dynamodb.client import DynamoDBClient

    from durable.adapters.dynamodb.attributes import Item

BATCH: Final = 25
"""Items of one BatchWriteItem (DynamoDB quotas)."""

READ_BATCH: Final = 100
"""Items of one BatchGetItem (DynamoDB quotas)."""

TRANSACTION: Final = 100
"""Items of one TransactWriteItems (DynamoDB quotas)."""

BATCH_PAUSES: Final = (0.05, 0.1, 0.2, 0.4)
"""Seconds to wait before the rest of a batch is asked for again: what was left out was left out for load."""

BATCH_TRIES: Final = len(BATCH_PAUSES) + 1


@dataclass(frozen=True, slots=True)
class Failed:
    """The condition did not hold: the item as it was, or None if there was none."""

    old: Mapping[str, Any] | None


class Requests:
    """The requests of the store, each to the same table."""

    def __init__(self, client: DynamoDBClient, table: str, pause: Callable[[float], None]) -> None:
        self._client = client
        self._table = table
        self._pause = pause

    def get(self, key: Item) -> Mapping[str, Any] | None:
        """Reads an item, strongly consistent."""
        with translated("DynamoDB"):
            return self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")

    def get_all(self, keys: Sequence[Item], attributes: str) -> Iterator[Mapping[str, Any]]:
        """Reads attributes of the items that exist, strongly consistent, a hundred a request."""
        for start in range(0, len(keys), READ_BATCH):
            pending: Any = {
                self._table: {
                    "Keys": keys[start : start + READ_BATCH],
                    "ConsistentRead": True,
                    "ProjectionExpression": attributes,
                }
            }
            for pause in (*BATCH_PAUSES, None):
                with translated("DynamoDB"):
                    reply = self._client.batch_get_item(RequestItems=pending)
                yield from reply["Responses"].get(self._table, [])
                pending = reply.get("UnprocessedKeys")
                if not pending:
                    break
                if pause is None:
                    raise StoreUnavailable("DynamoDB: some items were not read, for load")
                self._pause(pause)

    def put(self, item: Item, **guard: Any) -> Failed | None:
        """Writes an item."""
        try:
            with translated("DynamoDB"):
                self._client.put_item(TableName=self._table, Item=item, **guard)
        except ClientError as error:
            return _failed(error)
        return None

    def update(self, key: Item, arguments: Mapping[str, Any]) -> Mapping[str, Any] | Failed:
        """Updates an item; the answer holds what `ReturnValues` asks for."""
        try:
            with translated("DynamoDB"):
                reply = self._client.update_item(TableName=self._table, Key=key, **arguments)
        except ClientError as error:
            return _failed(error)
        return reply.get("Attributes", {})

    def delete(self, key: Item, **guard: Any) -> Failed | None:
        """Deletes an item."""
        try:
            with translated("DynamoDB"):
                self._client.delete_item(TableName=self._table, Key=key, **guard)
        except ClientError as error:
            return _failed(error)
        return None

    def put_all(self, items: Sequence[Item]) -> None:
        """Writes items without a condition, twenty-five a request; one by itself, which may be a plain put."""
        if len(items) == 1:
            self.put(items[0])
            return
        self._write_all([{"PutRequest": {"Item": item}} for item in items])

    def delete_all(self, keys: Sequence[Item]) -> None:
        """Deletes items without a condition, twenty-five a request; one by itself, which may be a plain delete."""
        if len(keys) == 1:
            self.delete(keys[0])
            return
        self._write_all([{"DeleteRequest": {"Key": key}} for key in keys])

    def transact(self, *writes: Mapping[str, Mapping[str, Any]]) -> Sequence[Failed | None] | None:
        """Performs several writes, each `{"Put": arguments}` or the like, or none of them.

        None if all were performed, else which conditions failed, in order.
        """
        items: list[Any] = [
            {action: {"TableName": self._table, **arguments} for action, arguments in write.items()} for write in writes
        ]
        try:
            with translated("DynamoDB"):
                self._client.transact_write_items(TransactItems=items)
        except self._client.exceptions.TransactionCanceledException as error:
            reasons = error.response.get("CancellationReasons", [])
            if len(reasons) < len(items):
                raise StoreUnavailable("DynamoDB: the transaction was cancelled for no stated reason") from error
            return [_reason(reason, error) for reason in reasons]
        return None

    def query(self, **arguments: Any) -> Mapping[str, Any]:
        """One page of a query."""
        with translated("DynamoDB"):
            return self._client.query(TableName=self._table, **arguments)

    def pages(self, **arguments: Any) -> Iterator[Mapping[str, Any]]:
        """The items of all pages of a query, each page asked for when it is reached."""
        while True:
            page = self.query(**arguments)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _write_all(self, writes: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(writes), BATCH):
            pending: Any = {self._table: writes[start : start + BATCH]}
            for pause in (*BATCH_PAUSES, None):
                with translated("DynamoDB"):
                    pending = self._client.batch_write_item(RequestItems=pending).get("UnprocessedItems")
                if not pending:
                    break
                if pause is None:
                    raise StoreUnavailable(f"DynamoDB: {len(pending[self._table])} items were not written, for load")
                self._pause(pause)


def _failed(error: ClientError) -> Failed:
    if code_of(error) != "ConditionalCheckFailedException":
        raise error
    return Failed(error.response.get("Item"))


def _reason(reason: Mapping[str, Any], error: ClientError) -> Failed | None:
    match reason.get("Code"):
        case "None" | None:
            return None
        case "ConditionalCheckFailed":
            return Failed(reason.get("Item"))
        case "ValidationError":
            raise error
        case code:
            # A conflict with another transaction, or throttling: nothing was written.
            raise StoreUnavailable(f"DynamoDB: the transaction was refused ({code})") from error
