"""What authors write into their own tables in one transaction: the shape of its items, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from durable.errors import LimitExceeded

TransactItem: TypeAlias = Mapping[str, Mapping[str, Any]]
"""One of `{"Put": ...}`, `{"Update": ...}`, `{"Delete": ...}`, `{"ConditionCheck": ...}` with plain Python values."""

ITEMS: Final = 98
"""A transaction has at most 100 items (DynamoDB quotas); two are the framework's: the check of the run, and the record."""

_NEEDED: Final = {
    "Put": ("TableName", "Item"),
    "Update": ("TableName", "Key", "UpdateExpression"),
    "Delete": ("TableName", "Key"),
    "ConditionCheck": ("TableName", "Key", "ConditionExpression"),
}
_ALLOWED: Final = frozenset({
    "TableName", "Item", "Key", "UpdateExpression", "ConditionExpression", "ExpressionAttributeNames",
    "ExpressionAttributeValues",
})  # fmt: skip


def checked_items(operation: str, items: object) -> Sequence[TransactItem]:
    """Gives the items back as they are.

    Raises:
        TypeError: The items, or one of them, have another shape.
        ValueError: There are none.
        LimitExceeded: There are more than one transaction can have.
    """
    if isinstance(items, Mapping | str) or not isinstance(items, Sequence):
        raise TypeError(f"{operation}() takes a list of items, not {type(cast('object', items)).__name__}")
    known = cast("Sequence[object]", items)
    if not known:
        raise ValueError(f"{operation}() got no items: there is nothing to write")
    if len(known) > ITEMS:
        raise LimitExceeded(
            f"the transaction of {operation}()", len(known), ITEMS, "items", "Split it into several operations."
        )
    return [_checked(f"item {index} of {operation}()", item) for index, item in enumerate(known)]


def _checked(what: str, item: object) -> TransactItem:
    actions = list(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else []
    if len(actions) != 1 or actions[0] not in _NEEDED:
        shown = f"one with {actions}" if actions else f"{item!r:.60}"
        raise TypeError(
            f'{what} must be a dict with one key of {", ".join(_NEEDED)}, as in {{"Put": {{...}}}}, not {shown}'
        )
    action = actions[0]
    arguments = cast("Mapping[str, Any]", item)[action]
    if not isinstance(arguments, Mapping):
        raise TypeError(f'{what}: the value of "{action}" must be a dict, not {type(arguments).__name__}')
    names = set(cast("Mapping[str, Any]", arguments))
    missing = [name for name in _NEEDED[action] if name not in names]
    unknown = sorted(name for name in names if name not in _ALLOWED or (name == "Item") > (action == "Put"))
    if missing or unknown:
        said = " and ".join(
            part
            for part in (
                f"needs {', '.join(missing)}" if missing else "",
                f"does not take {', '.join(unknown)}" if unknown else "",
            )
            if part
        )
        raise TypeError(f'{what}: "{action}" {said}')
    return cast("TransactItem", item)
