"""Transactions of workflows on DynamoDB: an entry, a check of the run, and items of the author's own tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from botocore.exceptions import ClientError

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, items, keys
from durable.adapters.errors import code_of, translated
from durable.adapters.sizes import check_entry
from durable.errors import Fenced, StoreUnavailable
from durable.model.answers import Refused

if TYPE_CHECKING:
    from boto3.dynamodb.types import TypeSerializer
    from types_boto3_dynamodb.client import DynamoDBClient

    from durable.adapters.dynamodb.attributes import AttributeValue, Item
    from durable.model.entry import Entry
    from durable.model.transaction import TransactItem

OURS: Final = 2
"""Items of the framework in every transaction, before the author's: the check of the run, the entry."""

_FAULTS: Final = frozenset({"ValidationException", "ResourceNotFoundException"})
"""The author's: an expression, a key or a table that is not there. Nothing was written."""

_REFUSALS: Final = frozenset({"ConditionalCheckFailed", "ValidationError", "ItemCollectionSizeLimitExceeded"})


class Transactions:
    """Writes to the framework's table and to others, in one request."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def write(self, run_id: str, entry: Entry, user_items: Sequence[TransactItem]) -> Refused | None:
        """Writes all or nothing; None once everything is written. Raises `Fenced` if the run has another epoch."""
        check_entry(entry)
        table = self._table
        try:
            written = [_user_write(table, item) for item in user_items]
        except _Refusal as refusal:
            return Refused(refusal.item_in(user_items), str(refusal))
        writes: list[Any] = [_check_of_run(table, run_id, entry.epoch), _put_of_entry(table, run_id, entry), *written]
        try:
            with translated("DynamoDB"):
                self._client.transact_write_items(TransactItems=writes)
        except self._client.exceptions.TransactionCanceledException as error:
            return _judged(run_id, entry, error)
        except ClientError as error:
            if code_of(error) not in _FAULTS:
                raise
            return Refused(None, error.response.get("Error", {}).get("Message", code_of(error)))
        return None


def _check_of_run(table: str, run_id: str, epoch: int) -> dict[str, Any]:
    key = {"pk": a.text(keys.partition(run_id)), "sk": a.text(keys.META)}
    guard = conditions.guarded(conditions.MINE, {":epoch": a.number(epoch)})
    return {"ConditionCheck": {"TableName": table, "Key": key, **guard}}


def _put_of_entry(table: str, run_id: str, entry: Entry) -> dict[str, Any]:
    guard = conditions.guarded(conditions.OLDER, {":epoch": a.number(entry.epoch)})
    return {"Put": {"TableName": table, "Item": items.entry_item(run_id, entry), **guard}}


def _judged(run_id: str, entry: Entry, error: ClientError) -> Refused | None:
    reasons: Sequence[Mapping[str, Any]] = cast("Any", error.response).get("CancellationReasons", [])
    codes = [reason.get("Code") or "None" for reason in reasons]
    if len(codes) < OURS:
        raise StoreUnavailable("DynamoDB: the transaction was cancelled for no stated reason") from error
    if codes[1] == "ConditionalCheckFailed" and _is_this(reasons[1].get("Item"), entry):
        return None  # it was written, and the reply to that was lost
    if "ConditionalCheckFailed" in codes[:OURS]:
        raise Fenced(run_id, entry.epoch)
    for index, code in enumerate(codes[OURS:]):
        if code in _REFUSALS:
            return Refused(
                index, code if code == "ConditionalCheckFailed" else reasons[index + OURS].get("Message", code)
            )
    raise StoreUnavailable(f"DynamoDB: the transaction was refused ({', '.join(set(codes) - {'None'})})") from error


def _is_this(stored: Item | None, entry: Entry) -> bool:
    return stored is not None and items.read_entry(stored).order == entry.order


class _Refusal(Exception):
    """An item that cannot even be sent."""

    def __init__(self, item: TransactItem, why: str) -> None:
        self._item = item
        super().__init__(why)

    def item_in(self, items: Sequence[TransactItem]) -> int:
        return next(index for index, item in enumerate(items) if item is self._item)


def _user_write(table: str, item: TransactItem) -> dict[str, Any]:
    ((action, arguments),) = item.items()
    if arguments["TableName"] == table:
        raise _Refusal(item, "it names the table of the framework")
    try:
        serialized = {
            name: _serialized(value) if name in {"Item", "Key", "ExpressionAttributeValues"} else value
            for name, value in arguments.items()
        }
    except TypeError as problem:
        raise _Refusal(item, str(problem)) from problem
    return {action: serialized}


def _serialized(values: Mapping[str, Any]) -> Item:
    return {
        name: cast("AttributeValue", _serializer().serialize(_without_floats(value))) for name, value in values.items()
    }


def _without_floats(value: object) -> object:
    match value:
        case float():
            return Decimal(repr(value))
        case dict():
            return {name: _without_floats(member) for name, member in cast("dict[str, object]", value).items()}
        case list():
            return [_without_floats(member) for member in cast("list[object]", value)]
        case _:
            return value


@cache
def _serializer() -> TypeSerializer:
    from boto3.dynamodb.types import TypeSerializer  # noqa: PLC0415 - 40 ms of boto3 that few functions need

    return TypeSerializer()
