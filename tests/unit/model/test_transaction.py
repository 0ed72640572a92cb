"""Items of a transaction: what fits is given back as it is, what does not is named."""

import pytest

from durable.errors import LimitExceeded
from durable.model.transaction import ITEMS, checked_items

PUT = {"Put": {"TableName": "t", "Item": {"pk": "a"}}}


def test_what_fits_is_given_back() -> None:
    assert checked_items("ctx.transact", [PUT] * ITEMS) == [PUT] * ITEMS


def test_two_items_are_left_for_the_framework() -> None:
    assert ITEMS == 98
    with pytest.raises(LimitExceeded, match="Split it"):
        checked_items("ctx.transact", [PUT] * 99)


@pytest.mark.parametrize("wrong", ["text", {"Put": {}}, 3, None])
def test_what_is_no_list_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="takes a list of items"):
        checked_items("ctx.transact", wrong)


def test_every_fault_of_an_item_is_named() -> None:
    wrong = {"Update": {"TableName": "t", "UpdateExpression": "x", "Item": {}, "Retry": 1}}
    with pytest.raises(
        TypeError, match=r'item 1 of ctx.transact\(\): "Update" needs Key and does not take Item, Retry'
    ):
        checked_items("ctx.transact", [PUT, wrong])
