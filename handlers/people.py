"""Routes for what people do with a run: ask it, decide for it, let it go on, and look at what it shows."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from durable import codec
from durable.errors import UpdateTimeout
from durable.model.ids import check_name
from handlers.answers import answer, body_of, query_of, wait_of, whole_number
from handlers.problems import Problem, Refused
from handlers.requests import (
    ContinueRequest,
    DecisionRequest,
    NamedDecisionRequest,
    NamedUpdateRequest,
    UpdateRequest,
)
from handlers.views import moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response

    from durable.client import Client, OpenReview, StreamChunk, UpdateHandle

LARGEST_PAGE = 500
DEFAULT_WAIT = 10
"""Seconds that an update is waited for."""


def add_people(api: APIGatewayHttpResolver, client: Client) -> None:
    """Adds the routes."""
    _add_shown(api, client)
    _add_updates(api, client)
    _add_decisions(api, client)
    _add_breakpoints(api, client)


def _add_shown(api: APIGatewayHttpResolver, client: Client) -> None:
    @api.get("/runs/<run_id>/state")
    def states(run_id: str) -> Response[str]:
        key = query_of(api, "key").get("key")
        return state(run_id, key) if key else answer({"state": client.states(unquote(run_id))})

    @api.get("/runs/<run_id>/state/<key>")
    def state_in_path(run_id: str, key: str) -> Response[str]:
        query_of(api)
        return state(run_id, unquote(key))

    def state(run_id: str, name: str) -> Response[str]:
        known = unquote(run_id)
        text = client.ports.store.get_state(client.get(known).id, check_name("state key", name))
        if text is None:
            detail = f'Run "{known}" has published nothing under "{name}".'
            raise Refused(Problem(status=404, type="state-not-found", title="There is no such state", detail=detail))
        return answer({"key": name, "value": codec.decode(text, codec.UNTYPED)})

    @api.get("/runs/<run_id>/streams/<key>")
    def stream_in_path(run_id: str, key: str) -> Response[str]:
        return stream(run_id, unquote(key), query_of(api, "after", "limit"))

    @api.get("/runs/<run_id>/streams")
    def named(run_id: str) -> Response[str]:
        query = query_of(api, "name", "after", "limit")
        return stream(run_id, query.get("name", ""), query)

    def stream(run_id: str, name: str, query: Mapping[str, str]) -> Response[str]:
        known = unquote(run_id)
        limit = whole_number(query, "limit", default=100, smallest=1, largest=LARGEST_PAGE)
        client.get(known)
        run = client.ports.store.get(known)  # asked first: what the run appended before its end is there afterwards
        ended = run is None or run.ended
        after = query.get("after") or None
        chunks = client.stream_page(known, name, after=after, limit=limit)
        cursor = chunks[-1].id if chunks else after
        done = ended and len(chunks) < limit
        return answer({"chunks": [_chunk(chunk) for chunk in chunks], "cursor": cursor, "ended": done})


def _add_updates(api: APIGatewayHttpResolver, client: Client) -> None:
    @api.post("/runs/<run_id>/updates/<name>")
    def update(run_id: str, name: str) -> Response[str]:
        return send(run_id, unquote(name), body_of(api, UpdateRequest))

    @api.post("/runs/<run_id>/updates")
    def named(run_id: str) -> Response[str]:
        request = body_of(api, NamedUpdateRequest)
        return send(run_id, request.name, request)

    def send(run_id: str, name: str, request: UpdateRequest) -> Response[str]:
        wait = _wait(api)
        return _response(client.send_update(unquote(run_id), name, request.arg, id=request.id), wait)

    @api.get("/runs/<run_id>/updates/<name>/<update_id>")
    def response(run_id: str, name: str, update_id: str) -> Response[str]:
        return _response(client.update_handle(unquote(run_id), unquote(name), unquote(update_id)), _wait(api))

    @api.get("/runs/<run_id>/updates")
    def response_to(run_id: str) -> Response[str]:
        query = query_of(api, "name", "id", "wait")
        handle = client.update_handle(unquote(run_id), query.get("name", ""), query.get("id", ""))
        return _response(handle, wait_of(query, default=DEFAULT_WAIT))


def _add_decisions(api: APIGatewayHttpResolver, client: Client) -> None:
    @api.get("/reviews")
    def reviews() -> Response[str]:
        query = query_of(api, "workflow", "reviewer", "limit", "cursor")
        workflow = query.get("workflow") or None
        if workflow is not None:
            client.app.newest(workflow)
        page = client.reviews(
            workflow,
            reviewer=query.get("reviewer") or None,
            limit=whole_number(query, "limit", default=50, smallest=1, largest=100),
            cursor=query.get("cursor") or None,
        )
        return answer({"reviews": [_review(review) for review in page.reviews], "cursor": page.cursor})

    @api.get("/runs/<run_id>/reviews")
    def reviews_of(run_id: str) -> Response[str]:
        query_of(api)
        return answer({"reviews": [_review(review) for review in client.reviews_of(unquote(run_id))]})

    @api.post("/reviews/<run_id>/<review>")
    def decide(run_id: str, review: str) -> Response[str]:
        return decided(run_id, unquote(review), body_of(api, DecisionRequest))

    @api.post("/runs/<run_id>/reviews")
    def named(run_id: str) -> Response[str]:
        request = body_of(api, NamedDecisionRequest)
        return decided(run_id, request.review, request)

    def decided(run_id: str, review: str, request: DecisionRequest) -> Response[str]:
        query_of(api)
        client.decide_review(
            unquote(run_id),
            review,
            request.decision,
            reviewer=request.reviewer,
            comment=request.comment,
            sections=[(section.title, section.text) for section in request.sections],
        )
        return answer({"run_id": unquote(run_id), "review": review}, HTTPStatus.ACCEPTED)


def _add_breakpoints(api: APIGatewayHttpResolver, client: Client) -> None:
    @api.post("/runs/<run_id>/continue")
    def go_on(run_id: str) -> Response[str]:
        query_of(api)
        request = body_of(api, ContinueRequest)
        client.continue_breakpoint(unquote(run_id), request.label)
        return answer({"run_id": unquote(run_id), "label": request.label}, HTTPStatus.ACCEPTED)


def _wait(api: APIGatewayHttpResolver) -> int:
    return wait_of(query_of(api, "wait"), default=DEFAULT_WAIT)


def _response(handle: UpdateHandle[Any], wait: int) -> Response[str]:
    try:
        return answer({"id": handle.id, "response": handle.result(timeout=wait)})
    except UpdateTimeout:
        return answer({"id": handle.id}, HTTPStatus.ACCEPTED)


def _review(review: OpenReview) -> dict[str, Any]:
    return {
        "run_id": review.run_id,
        "workflow": review.workflow,
        "name": review.name,
        "location": review.location,
        "artifact": review.artifact,
        "reviewers": list(review.reviewers),
        "opened_at": moment(review.opened_at.timestamp()),
        "deadline": None if review.deadline is None else moment(review.deadline.timestamp()),
    }


def _chunk(chunk: StreamChunk) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "value": chunk.value,
        "source": chunk.source,
        "execution": chunk.execution,
        "number": chunk.number,
    }
