"""What AWS refuses and moto accepts: checked on every request of the tests."""

import re
from typing import Any

from durable.adapters.dynamodb.capacity import item_bytes
from durable.aws import Clients

EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
ITEM_LIMIT = 400 * 1024


class RefusedByAws(AssertionError):
    pass


def refuse_what_aws_refuses(clients: Clients) -> None:
    clients.dynamodb.meta.events.register("before-parameter-build.dynamodb", check, unique_id="strict")


def check(params: dict[str, Any], **_: Any) -> None:
    writes = [write for action in params.get("TransactItems", []) for write in action.values()]
    for request in (params, *writes):
        check_expressions(request)
        if "Item" in request and item_bytes(request["Item"]) > ITEM_LIMIT:
            raise RefusedByAws("an item of more than 400 KB")
    check_batch(params.get("RequestItems", {}))
    touched = [str(key_of(write)) for write in writes if "pk" in key_of(write)]
    if len(touched) > 100 or len(touched) != len(set(touched)):
        raise RefusedByAws("a transaction of more than 100 items, or one that names an item twice")


def key_of(write: dict[str, Any]) -> Any:
    """The key of an item of our table; other tables have other keys."""
    item = write.get("Key", write.get("Item", {}))
    return {name: value for name, value in item.items() if name in {"pk", "sk"}}


def check_batch(batches: dict[str, Any]) -> None:
    if any(isinstance(batch, dict) for batch in batches.values()):
        read = [str(key) for batch in batches.values() for key in batch["Keys"]]
        if len(read) > 100 or len(read) != len(set(read)):
            raise RefusedByAws("a batch that reads more than 100 items, or one item twice")
        return
    if sum(map(len, batches.values())) > 25:
        raise RefusedByAws("a batch of more than 25 items")
    keys = [str(write) for batch in batches.values() for write in batch]
    if len(keys) != len(set(keys)):
        raise RefusedByAws("a batch that names an item twice")


def check_expressions(request: dict[str, Any]) -> None:
    spelt = " ".join(request.get(name, "") for name in EXPRESSIONS)
    for kind, mark in (("ExpressionAttributeNames", "#"), ("ExpressionAttributeValues", ":")):
        defined = set(request.get(kind, {}))
        used = set(re.findall(rf"{mark}\w+", spelt))
        if defined != used:
            raise RefusedByAws(f"{kind}: defined {sorted(defined)}, used {sorted(used)}")
        if kind in request and not defined:
            raise RefusedByAws(f"{kind} must not be empty")
