"""Lanes on DynamoDB: slots, who has them, and who waits for them.

A lane is one item. A ticket is two: its place, which is small because the head of the queue is read often, and the ticket
itself, under the name of its holder.
"""

from __future__ import annotations

from functools import cache
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, keys
from durable.adapters.dynamodb.listing import END_OF_TIME
from durable.adapters.sizes import check_ticket
from durable.model.lane import Lane, LaneState, Place, Ticket

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.dynamodb.attributes import Item
    from durable.adapters.dynamodb.requests import Failed, Requests

SAME_VERSION: Final = "#version = :version"


class Lanes:
    """Reads and writes lanes."""

    def __init__(self, requests: Requests, shards: int) -> None:
        self._requests = requests
        self._shards = shards

    def read(self, name: str, tickets: int) -> LaneState | None:
        """One request. The places behind the lane may be a moment younger than it; its next write tells."""
        if not tickets:
            item = self._requests.get(_key(name, keys.LANE))
            return None if item is None else LaneState(_read_lane(item), [])
        values = {
            ":pk": a.text(keys.lane_partition(name)),
            ":lane": a.text(keys.LANE),
            ":end": a.text(keys.PLACES.replace("#", "$")),
        }
        rows = self._requests.pages(
            KeyConditionExpression="pk = :pk AND sk BETWEEN :lane AND :end",
            ExpressionAttributeValues=values,
            ConsistentRead=True,
            Limit=tickets + 1,
        )
        found = list(islice(rows, tickets + 1))
        if not found or found[0]["sk"]["S"] != keys.LANE:
            return None
        return LaneState(_read_lane(found[0]), [_read_place(place) for place in found[1:]])

    def find(self, name: str, holder: str) -> Ticket | None:
        """One request."""
        item = self._requests.get(_key(name, keys.ticket_key(holder)))
        return None if item is None else _read_ticket(item)

    def write(self, lane: Lane, expected_version: int | None, put: Sequence[Ticket], remove: Sequence[Ticket]) -> bool:
        """One request, which is a transaction where tickets come or go."""
        name = lane.spec.name
        guard = conditions.guarded(conditions.ABSENT)
        if expected_version is not None:
            guard = conditions.guarded(SAME_VERSION, {":version": a.number(expected_version)})
        if not put and not remove:
            if lane.forgettable:
                failed = self._requests.delete(_key(name, keys.LANE), **guard)
            else:
                failed = self._requests.put(self._item(lane), **guard)
            return failed is None or _is_ours(lane, failed)
        writes: list[Mapping[str, Any]] = [
            {"Delete": {"Key": _key(name, keys.LANE), **guard}}
            if lane.forgettable
            else {"Put": {"Item": self._item(lane), **guard}}
        ]
        for ticket in put:
            check_ticket(ticket)
            writes += [{"Put": {"Item": _place_item(name, ticket)}}, {"Put": _ticket_put(name, ticket)}]
        for ticket in remove:
            place, own = _key(name, keys.place_key(ticket.rank)), _key(name, keys.ticket_key(ticket.holder))
            writes += [{"Delete": {"Key": place}}, {"Delete": {"Key": own}}]
        reasons = self._requests.transact(*writes)
        if reasons is None:
            return True
        return reasons[0] is not None and _is_ours(lane, reasons[0])

    def due(self, *, before: float, limit: int) -> Sequence[str]:
        """One request a shard."""
        shards = [
            self._requests.pages(
                IndexName="due",
                KeyConditionExpression="due_shard = :shard AND due_at <= :before",
                ExpressionAttributeValues={
                    ":shard": a.text(f"lane#{shard}"), ":before": a.number(min(before, END_OF_TIME))
                },
                Limit=limit,
            )
            for shard in range(self._shards)
        ]  # fmt: skip
        rows = merge(*shards, key=lambda item: (float(item["due_at"]["N"]), item["pk"]["S"]))
        return [keys.lane_name_of(item["pk"]["S"]) for item in islice(rows, limit)]

    def _item(self, lane: Lane) -> Item:
        name = lane.spec.name
        item = _key(name, keys.LANE) | {
            "version": a.number(lane.version),
            "writer": a.text(lane.writer),
            "state": a.packed(_adapter().dump_json(lane, exclude_defaults=True).decode()),
        }
        if lane.due_at is not None:
            item |= {"due_shard": a.text(keys.lane_shard(name, self._shards)), "due_at": a.number(lane.due_at)}
        if lane.expires_at is not None:
            item["expires_at"] = a.number(int(lane.expires_at) + 1)
        return item


@cache
def _adapter() -> TypeAdapter[Lane]:
    return TypeAdapter(Lane)  # few functions need it, and building it takes milliseconds


def _key(name: str, sk: str) -> Item:
    return {"pk": a.text(keys.lane_partition(name)), "sk": a.text(sk)}


def _read_lane(item: Mapping[str, Any]) -> Lane:
    return _adapter().validate_json(a.read_packed(item["state"]))


def _is_ours(lane: Lane, refused: Failed) -> bool:
    """Whether an earlier try of the same write had its effect; a lane that is gone has nobody in it, whoever deleted it."""
    if refused.old is None:
        return lane.forgettable
    return a.read_text(refused.old["writer"]) == lane.writer


def _place_item(name: str, ticket: Ticket) -> Item:
    return _key(name, keys.place_key(ticket.rank)) | {"holder": a.text(ticket.holder)}


def _read_place(item: Mapping[str, Any]) -> Place:
    return Place(rank=item["sk"]["S"].removeprefix(keys.PLACES), holder=a.read_text(item["holder"]))


def _ticket_put(name: str, ticket: Ticket) -> dict[str, Any]:
    item = _key(name, keys.ticket_key(ticket.holder)) | {
        "rank": a.text(ticket.rank),
        "priority": a.number(ticket.priority),
        "fairness_key": a.text(ticket.fairness_key),
        "arrived_at": a.number(ticket.arrived_at),
        "action": a.packed(ticket.action),
    }
    return {"Item": item, **conditions.guarded(conditions.ABSENT)}


def _read_ticket(item: Mapping[str, Any]) -> Ticket:
    return Ticket(
        holder=item["sk"]["S"].removeprefix(keys.ticket_key("")),
        rank=a.read_text(item["rank"]),
        priority=a.read_int(item["priority"]),
        fairness_key=a.read_text(item["fairness_key"]),
        arrived_at=a.read_float(item["arrived_at"]),
        action=a.read_packed(item["action"]),
    )
