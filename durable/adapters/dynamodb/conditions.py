"""The conditions of the turn protocol, and how requests spell them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.adapters.dynamodb.attributes import AttributeValue

ABSENT: Final = "attribute_not_exists(#pk)"
"""Nothing has this key."""

NOT_NEWER: Final = "attribute_not_exists(#pk) OR #epoch <= :epoch"
"""An item is written, or deleted, where there is none or one that is not of a newer epoch."""

OLDER: Final = "attribute_not_exists(#pk) OR #epoch < :epoch"
"""An item is written once in an epoch: a repetition is told from the first time."""

RUNNABLE: Final = (
    "attribute_exists(#pk) AND attribute_not_exists(#outcome)"
    " AND (attribute_not_exists(#lease_until) OR #lease_until <= :now)"
    " AND NOT (#status = :blocked AND #code_version = :code_version)"
)
"""A turn may begin: the run exists, is open, not blocked under this code, and nobody holds a live lease."""

DUE_IS_NEAR: Final = "(attribute_not_exists(#due_at) OR #due_at <= :far)"
DUE_IS_FAR: Final = "(attribute_not_exists(#due_at) OR #due_at > :far)"

HELD: Final = "#lease_until > :now"
"""Somebody will look at the run again before it settles."""

MINE: Final = "#epoch = :epoch"
"""Nobody has acquired the run since."""

EXISTS: Final = "attribute_exists(#pk)"

UNSETTLED: Final = f"{MINE} AND attribute_exists(#lease_owner)"
"""The turn has neither settled nor given up; so a settle that is repeated after a lost reply is recognised."""

UNSEEN: Final = "#wakes = :wakes"
"""Nothing has asked for a turn since the mailbox was read."""

OPEN: Final = "attribute_exists(#pk) AND attribute_not_exists(#outcome)"
"""The run exists and has not ended."""

BLOCKED: Final = "#status = :blocked"

AT_REST: Final = f"{OPEN} AND NOT {BLOCKED} AND (attribute_not_exists(#lease_until) OR #lease_until <= :now)"
BUSY_OR_BLOCKED: Final = f"{OPEN} AND ({BLOCKED} OR #lease_until > :now)"

GIVEN_UP: Final = "#outcome IN (:failed, :dead)"
"""The run has ended in a way that a retry may mend."""

ENDED: Final = "attribute_exists(#outcome)"

OVER: Final = f"{ENDED} AND attribute_not_exists(#outbox) AND {MINE}"
"""The run has ended, owes nothing, and has not been reopened since."""

STAYS: Final = "attribute_not_exists(#deleting)"

UNCUT: Final = f"{MINE} AND NOT contains(#cuts, :cut)"
"""The cut has not been recorded by an earlier try."""

SAME_LIFE: Final = "#born = :born"
"""The id has not been used again since."""

NOT_CLOSED: Final = "attribute_not_exists(#closed)"
"""The result of the attempt is still wanted, or nobody has said otherwise."""

_NAME: Final = re.compile(r"#(\w+)")


def names(*expressions: str) -> dict[str, str]:
    """The placeholders of the expressions: every attribute is spelt `#name`, so no reserved word is met."""
    return {f"#{name}": name for expression in expressions for name in _NAME.findall(expression)}


def guarded(condition: str, values: Mapping[str, AttributeValue] | None = None) -> dict[str, Any]:
    """Arguments of a put or delete under a condition, whose failure tells the old item."""
    arguments: dict[str, Any] = {
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names(condition),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if values:
        arguments["ExpressionAttributeValues"] = dict(values)
    return arguments


def update(
    changes: Mapping[str, AttributeValue | None],
    condition: str,
    values: Mapping[str, AttributeValue] | None = None,
    *expressions: str,
) -> dict[str, Any]:
    """Arguments of an update under a condition, whose failure tells the old item.

    Attributes in `changes` are set, or removed where None; `expressions` are further assignments
    (`#epoch = #epoch + :one`), and `values` holds what they and the condition name.
    """
    assignments = [*(f"#{name} = :{name}_" for name, value in changes.items() if value is not None), *expressions]
    removals = [f"#{name}" for name, value in changes.items() if value is None]
    expression = " ".join(
        clause + ", ".join(parts) for clause, parts in (("SET ", assignments), ("REMOVE ", removals)) if parts
    )
    new = {f":{name}_": value for name, value in changes.items() if value is not None}
    arguments = guarded(condition, new | dict(values or {}))
    arguments["UpdateExpression"] = expression
    arguments["ExpressionAttributeNames"] = names(condition, expression)
    return arguments
