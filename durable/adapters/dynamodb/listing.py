"""Listings from the indexes: eventually consistent, merged over their shards."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import keys
from durable.adapters.dynamodb.filters import Filter, filtered
from durable.model.run import TERMINAL
from durable.ports import RunPage, RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from durable.adapters.dynamodb.requests import Requests
    from durable.model.run import Status
    from durable.ports import Condition

FILTERED_PAGE: Final = 1000
"""Rows that one request of a filtered listing looks at: about 128 KB."""

EVERY: Final = Filter()

END_OF_TIME: Final = 1e12
"""Later than any due time; DynamoDB's numbers have no infinity."""


class Listing:
    """Reads the three indexes of the table."""

    def __init__(self, requests: Requests, shards: int) -> None:
        self._requests = requests
        self._shards = shards

    def runs(
        self,
        workflow: str,
        *,
        outcome: Status | Literal["open"] | None,
        tag: str | None,
        where: Sequence[Condition],
        limit: int,
        cursor: str | None,
    ) -> RunPage:
        """A workflow's runs, newest first: one request a shard, or one for each thousand rows of it with a filter."""
        wanted = filtered(outcome, tag, where)
        pages = [self._newest("listing", f"{workflow}#{shard}", limit, cursor, wanted) for shard in range(self._shards)]
        return _page(pages, workflow, limit)

    def attention(self, status: Status, *, limit: int, cursor: str | None) -> RunPage:
        """Runs that need somebody, newest first."""
        pages = [self._newest("attention", f"{status}#{shard}", limit, cursor) for shard in range(self._shards)]
        return _page(pages, "", limit, status if status in TERMINAL else None)

    def due(self, *, before: float, limit: int) -> Sequence[str]:
        """Ids of runs that are due, the longest overdue first."""
        return self._due([str(shard) for shard in range(self._shards)], before, limit)

    def expired(self, *, before: float, limit: int) -> Sequence[str]:
        """Ids of ended runs that are to be deleted, the longest due first."""
        return self._due([f"ended#{shard}" for shard in range(self._shards)], before, limit)

    def _due(self, index_keys: Sequence[str], before: float, limit: int) -> Sequence[str]:
        shards = [
            self._requests.pages(
                IndexName="due",
                KeyConditionExpression="due_shard = :shard AND due_at <= :before",
                ExpressionAttributeValues={":shard": a.text(key), ":before": a.number(min(before, END_OF_TIME))},
                Limit=limit,
            )
            for key in index_keys
        ]
        rows = merge(*shards, key=lambda item: (float(item["due_at"]["N"]), item["pk"]["S"]))
        return [keys.run_id_of(item["pk"]["S"]) for item in islice(rows, limit)]

    def blocked(self, *, not_under: str, limit: int) -> Sequence[str]:
        """Ids of runs that other code has blocked, the oldest first."""
        shards = [
            self._requests.pages(
                IndexName="attention",
                KeyConditionExpression="#attention = :attention",
                FilterExpression="attribute_not_exists(#code_version) OR #code_version <> :code_version",
                ExpressionAttributeNames={"#attention": "attention", "#code_version": "code_version"},
                ExpressionAttributeValues={
                    ":attention": a.text(f"blocked#{shard}"),
                    ":code_version": a.text(not_under),
                },
                Limit=FILTERED_PAGE,
            )
            for shard in range(self._shards)
        ]
        return [keys.run_id_of(row["pk"]["S"]) for row in islice(merge(*shards, key=_created), limit)]

    def _newest(
        self, index: str, value: str, limit: int, cursor: str | None, wanted: Filter = EVERY
    ) -> Iterator[Mapping[str, Any]]:
        condition = f"#{index} = :index"
        names = {f"#{index}": index}
        values = {":index": a.text(value)}
        if cursor is not None:
            condition += " AND #created < :cursor"
            names["#created"] = "created"
            values[":cursor"] = a.text(cursor)
        rows = self._requests.pages(
            IndexName=index,
            KeyConditionExpression=condition,
            ScanIndexForward=False,
            ExpressionAttributeNames={**names, **wanted.names},
            ExpressionAttributeValues={**values, **wanted.values},
            Limit=FILTERED_PAGE if wanted else limit + 1,
            **wanted.arguments(),
        )
        return filter(wanted.keeps, rows)


def _page(
    shards: Sequence[Iterator[Mapping[str, Any]]], workflow: str, limit: int, outcome: Status | None = None
) -> RunPage:
    rows = list(islice(merge(*shards, key=_created, reverse=True), limit + 1))
    return RunPage(
        runs=[_summary(row, workflow, outcome) for row in rows[:limit]],
        cursor=_created(rows[limit - 1]) if len(rows) > limit else None,
    )


def _created(row: Mapping[str, Any]) -> str:
    return row["created"]["S"]


def _summary(row: Mapping[str, Any], workflow: str, outcome: Status | None) -> RunSummary:
    return RunSummary(
        id=keys.run_id_of(row["pk"]["S"]),
        workflow=workflow,
        created_at=a.read_float(row["created_at"]) if "created_at" in row else keys.created_at_of(_created(row)),
        outcome=row["outcome"]["S"] if "outcome" in row else outcome,
        tags=a.read_texts(row["tags"]) if "tags" in row else (),
        attributes=a.read_search_attributes(row["attributes"]) if "attributes" in row else {},
    )
