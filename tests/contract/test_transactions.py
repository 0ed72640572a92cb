"""An entry and items of the author's own tables are written together or not at all, by the run's owner, once."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import pytest
from boto3.dynamodb.types import TypeDeserializer

from durable.adapters.memory import MemoryStore
from durable.errors import Fenced
from durable.model.answers import Refused
from durable.model.run import Run
from durable.ports import Store
from tests.contract.builders import NOW, an_entry, created, entries, owned
from tests.contract.conftest import ADAPTERS
from tests.contract.worlds import AwsWorld, MemoryWorld

NAMES = (f"stock-{n}" for n in count())


@dataclass(frozen=True)
class Shop:
    """A store, and a table of the author's own beside it."""

    store: Store
    table: str
    row: Callable[[str], dict[str, Any] | None]

    def item(self, action: str, sku: str, **arguments: Any) -> dict[str, dict[str, Any]]:
        return {action: {"TableName": self.table, "Key": {"sku": sku}, **arguments}}

    def put(self, sku: str, **attributes: Any) -> dict[str, dict[str, Any]]:
        return {"Put": {"TableName": self.table, "Item": {"sku": sku, **attributes}}}

    def one_less(self, sku: str = "book") -> dict[str, dict[str, Any]]:
        return self.item(
            "Update", sku, UpdateExpression="SET #left = #left - :one", ConditionExpression="#left >= :one",
            ExpressionAttributeNames={"#left": "left"}, ExpressionAttributeValues={":one": 1},
        )  # fmt: skip


@pytest.fixture(params=ADAPTERS)
def shop(request: pytest.FixtureRequest) -> Shop:
    name = next(NAMES)
    if request.param == "memory":
        store = cast("MemoryStore", MemoryWorld().store)
        table = store.tables.declare(name, ("sku",))
        return Shop(store, name, lambda sku: table.get(sku=sku))
    world: AwsWorld = request.getfixturevalue(f"{request.param}_tables")
    world.clear_table()
    dynamodb: Any = world.clients.dynamodb
    dynamodb.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "sku", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "sku", "AttributeType": "S"}],
    )  # fmt: skip

    def row(sku: str) -> dict[str, Any] | None:
        item = dynamodb.get_item(TableName=name, Key={"sku": {"S": sku}}).get("Item")
        read = TypeDeserializer().deserialize
        return None if item is None else {key: read(value) for key, value in item.items()}

    return Shop(world.store, name, row)


def stocked(shop: Shop, left: int = 5) -> Run:
    created(shop.store)
    run = owned(shop.store)
    assert shop.store.transact("run-1", an_entry("fill", epoch=run.epoch), [shop.put("book", left=left)]) is None
    return run


def reservation(run: Run, **fields: Any) -> Any:
    return an_entry("reserve", kind="transact", epoch=run.epoch, n=2, attempts=1, **fields)


def test_the_entry_and_the_items_are_written_together(shop: Shop) -> None:
    run = stocked(shop)
    items = [shop.one_less(), shop.put("order-1", cents=12.5, lines=["a", {"b": None}], paid=True)]
    assert shop.store.transact("run-1", reservation(run), items) is None
    assert shop.row("book") == {"sku": "book", "left": 4}
    assert shop.row("order-1") == {"sku": "order-1", "cents": 12.5, "lines": ["a", {"b": None}], "paid": True}
    assert entries(shop.store)[-1] == reservation(run)


def test_a_repetition_after_a_lost_reply_changes_nothing(shop: Shop) -> None:
    run = stocked(shop)
    for _ in range(3):
        assert shop.store.transact("run-1", reservation(run), [shop.one_less()]) is None
    assert shop.row("book") == {"sku": "book", "left": 4}


def test_a_failed_condition_names_its_item_and_nothing_is_written(shop: Shop) -> None:
    run = stocked(shop, left=0)
    answer = shop.store.transact("run-1", reservation(run), [shop.put("order-1"), shop.one_less()])
    assert answer == Refused(1, "ConditionalCheckFailed")
    assert shop.row("order-1") is None
    assert [entry.location for entry in entries(shop.store)] == ["fill"]


def test_whoever_lost_the_run_writes_nothing(shop: Shop) -> None:
    run = stocked(shop)
    owned(shop.store, now=NOW + 1000, lease_until=NOW + 2000, owner="owner-2")
    with pytest.raises(Fenced):
        shop.store.transact("run-1", reservation(run), [shop.one_less()])
    assert shop.row("book") == {"sku": "book", "left": 5}
    assert [entry.location for entry in entries(shop.store)] == ["fill"]


def test_an_entry_of_an_older_epoch_gives_way(shop: Shop) -> None:
    run = stocked(shop)
    shop.store.put_entry("run-1", reservation(run, value="1"))
    after = owned(shop.store, now=NOW + 1000, lease_until=NOW + 2000, owner="owner-2")
    assert shop.store.transact("run-1", reservation(after), [shop.one_less()]) is None
    assert shop.row("book") == {"sku": "book", "left": 4}


@pytest.mark.parametrize("action", ["Delete", "ConditionCheck"])
def test_items_are_deleted_and_checked(shop: Shop, action: str) -> None:
    run = stocked(shop)
    item = shop.item(action, "book", ConditionExpression="attribute_exists(sku)")
    assert shop.store.transact("run-1", reservation(run), [item]) is None
    assert (shop.row("book") is None) == (action == "Delete")


def test_a_fault_of_the_authors_is_a_refusal(shop: Shop, request: pytest.FixtureRequest) -> None:
    run = stocked(shop)
    nowhere = {"Put": {"TableName": "there-is-no-such-table", "Item": {"sku": "a"}}}
    unreadable = shop.item("Update", "book", UpdateExpression="SET SET")
    twice = shop.item("Delete", "book", ConditionExpression="attribute_exists(sku)")
    lenient = request.node.callspec.params["shop"] == "ministack"  # it takes anything for an expression
    for items in ([nowhere], [shop.put("book"), twice], *([] if lenient else [[unreadable]])):
        assert isinstance(shop.store.transact("run-1", reservation(run), items), Refused)
    assert shop.row("book") == {"sku": "book", "left": 5}


@pytest.mark.parametrize(
    ("update", "left"),
    [
        ("ADD #left :one", 6),
        ("SET #left = if_not_exists(#left, :one) + :one", 6),
        ("SET #new = if_not_exists(#new, :one) REMOVE #left", None),
    ],
)
def test_updates_mean_the_same_everywhere(shop: Shop, update: str, left: int | None) -> None:
    run = stocked(shop)
    names = {name: name[1:] for name in ("#left", "#new") if name in update}
    item = shop.item(
        "Update", "book", UpdateExpression=update, ExpressionAttributeNames=names,
        ExpressionAttributeValues={":one": 1},
    )  # fmt: skip
    assert shop.store.transact("run-1", reservation(run), [item]) is None
    assert (shop.row("book") or {}).get("left") == left


@pytest.mark.parametrize(
    ("condition", "true"),
    [
        ("#left = :five AND attribute_not_exists(gone)", True),
        ("#left <> :five OR NOT attribute_exists(gone)", True),
        ("(#left < :five OR gone = :five) AND attribute_exists(sku)", False),
        ("#left BETWEEN :one AND :five AND begins_with(sku, :bo)", True),
        ("#left IN (:one, :two)", False),
        ("size(sku) > :one AND contains(sku, :bo)", True),
    ],
)
def test_conditions_mean_the_same_everywhere(shop: Shop, condition: str, *, true: bool) -> None:
    run = stocked(shop)
    values = {":one": 1, ":two": 2, ":five": 5, ":bo": "bo"}
    arguments: dict[str, Any] = {"ExpressionAttributeNames": {"#left": "left"}} if "#left" in condition else {}
    used = {name: value for name, value in values.items() if name in condition}
    item = shop.item(
        "ConditionCheck", "book", ConditionExpression=condition, ExpressionAttributeValues=used, **arguments
    )
    answer = shop.store.transact("run-1", reservation(run), [item])
    assert (answer is None) == true
