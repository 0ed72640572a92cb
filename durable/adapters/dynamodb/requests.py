"""Requests to one table; a failed condition is an answer here, not an exception."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from durable.adapters.errors import code_of, translated
from durable.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from types_boto3_dynamodb.client import DynamoDBClient

    from durable.adapters.dynamodb.attributes import Item

BATCH: Final = 25
"""Items of one BatchWriteItem (DynamoDB quotas)."""

BATCH_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Failed:
    """The condition did not hold: the item as it was, or None if there was none."""

    old: Mapping[str, Any] | None


class Requests:
    """The requests of the store, each to the same table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, key: Item) -> Mapping[str, Any] | None:
        """Reads an item, strongly consistent."""
        with translated("DynamoDB"):
            return self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")

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

    def delete_all(self, keys: Sequence[Item]) -> None:
        """Deletes items without a condition, twenty-five a request."""
        for start in range(0, len(keys), BATCH):
            self._delete_batch(keys[start : start + BATCH])

    def transact(self, puts: Sequence[Mapping[str, Any]]) -> Sequence[Failed | None] | None:
        """Writes several items or none; None if all were written, else which conditions failed, in order."""
        writes: list[Any] = [{"Put": {"TableName": self._table, **put}} for put in puts]
        try:
            with translated("DynamoDB"):
                self._client.transact_write_items(TransactItems=writes)
        except self._client.exceptions.TransactionCanceledException as error:
            return [_reason(reason, error) for reason in error.response.get("CancellationReasons", [])]
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

    def _delete_batch(self, keys: Sequence[Item]) -> None:
        pending: Any = {self._table: [{"DeleteRequest": {"Key": key}} for key in keys]}
        for _ in range(BATCH_TRIES):
            with translated("DynamoDB"):
                pending = self._client.batch_write_item(RequestItems=pending).get("UnprocessedItems")
            if not pending:
                return
        raise StoreUnavailable(f"DynamoDB: {len(pending[self._table])} items were not deleted, for load")


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
