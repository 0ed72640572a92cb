"""The API function: starts runs, steers them, and shows what they do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from durable.engine.claims import TaskClaims
from durable.errors import InvalidInput
from handlers import bootstrap, problems
from handlers.answers import answer, body_of, headers_of, query_of, wait_of
from handlers.bootstrap import AppNotFound
from handlers.exporting import add_exporting
from handlers.happenings import add_happenings
from handlers.outside import add_outside, without_token
from handlers.people import add_people
from handlers.problems import Problem
from handlers.requests import CancelRequest, MessageRequest, NoBody, StartRequest, TerminateRequest
from handlers.runs import COUNTED, LISTED, Runs
from handlers.tasks import add_tasks

log = logging.getLogger("durable")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answers one request of the HTTP API; every refusal is a problem document."""
    try:
        resolver = _resolver()
    except (AppNotFound, InvalidInput) as error:
        log.error("the deployment is broken: %s", error)  # noqa: TRY400 - the sentence says it all
        broken = Problem(status=503, type="deployment-broken", title="The deployment is broken", detail=str(error))
        body = broken.document(event.get("rawPath", "/"))
        return {"statusCode": broken.status, "headers": {"content-type": problems.CONTENT_TYPE}, "body": body}
    return resolver.resolve(event, context)


@cache
def _resolver() -> APIGatewayHttpResolver:
    container = bootstrap.container()
    return build(Runs(container.app, container.client, container.ports), container.claims)


def build(runs: Runs, claims: TaskClaims | None = None) -> APIGatewayHttpResolver:
    """The routes over what they act on; without `claims` those of workers are left out."""
    api = APIGatewayHttpResolver()
    _add_refusals(api)
    _add_reading(api, runs)
    _add_starting(api, runs)
    _add_steering(api, runs)
    add_people(api, runs.client)
    add_outside(api, runs.client)
    add_happenings(api, runs.client)
    add_exporting(api, runs.client)
    if claims is not None:
        add_tasks(api, claims)
    return api


def _add_reading(api: APIGatewayHttpResolver, runs: Runs) -> None:
    @api.get("/health")
    def health() -> Response[str]:
        query_of(api)
        return answer({"status": "ok", "app": runs.app_name})

    @api.get("/workflows")
    def workflows() -> Response[str]:
        query_of(api)
        return answer({"workflows": runs.workflows()})

    @api.get("/runs")
    def listing() -> Response[str]:
        return answer(runs.page(query_of(api, *LISTED)))

    @api.get("/count")
    def count() -> Response[str]:
        return answer({"count": runs.count(query_of(api, *COUNTED))})

    @api.get("/runs/<run_id>")
    def run(run_id: str) -> Response[str]:
        return answer(runs.get(unquote(run_id), wait=wait_of(query_of(api, "wait"), default=0)))

    @api.get("/runs/<run_id>/history")
    def history(run_id: str) -> Response[str]:
        return answer(runs.history(unquote(run_id), query_of(api, "cursor")))


def _add_starting(api: APIGatewayHttpResolver, runs: Runs) -> None:
    @api.post("/runs")
    def start() -> Response[str]:
        wait = wait_of(query_of(api, "wait"), default=0)
        key = api.current_event.headers.get("idempotency-key")
        request = body_of(api, StartRequest)
        if request.message is not None:
            if wait or key is not None:
                raise InvalidInput("the request", "a start with a message takes neither wait nor an Idempotency-Key")
            accepted = runs.start_with_message(request, request.message, headers=headers_of(api))
            return answer(accepted, HTTPStatus.ACCEPTED, _location(accepted))
        started = runs.start(request, key, headers=headers_of(api), wait=wait)
        status = HTTPStatus.CREATED if started.created else HTTPStatus.OK
        return answer(started.view, status, _location(started.view))


def _location(run: Mapping[str, Any]) -> dict[str, str]:
    return {"location": f"/runs/{quote(run['id'], safe='')}"}


def _add_steering(api: APIGatewayHttpResolver, runs: Runs) -> None:
    @api.post("/runs/<run_id>/messages")
    def send(run_id: str) -> Response[str]:
        query_of(api)
        return answer(runs.send(unquote(run_id), body_of(api, MessageRequest)), HTTPStatus.ACCEPTED)

    @api.delete("/runs/<run_id>")
    def delete(run_id: str) -> Response[str]:
        query_of(api)
        runs.client.delete(unquote(run_id))
        return Response(HTTPStatus.NO_CONTENT)

    @api.post("/runs/<run_id>/cancel")
    def cancel(run_id: str) -> Response[str]:
        query_of(api)
        request = body_of(api, CancelRequest, optional=True)
        at_once = request.mode == "terminate"
        return answer(runs.cancel(unquote(run_id), request), HTTPStatus.OK if at_once else HTTPStatus.ACCEPTED)

    @api.post("/runs/<run_id>/terminate")
    def terminate(run_id: str) -> Response[str]:
        query_of(api)
        return answer(runs.terminate(unquote(run_id), body_of(api, TerminateRequest, optional=True)))

    @api.post("/runs/<run_id>/retry")
    def retry(run_id: str) -> Response[str]:
        query_of(api)
        body_of(api, NoBody, optional=True)
        return answer(runs.retry(unquote(run_id)))

    @api.post("/runs/<run_id>/resume")
    def resume(run_id: str) -> Response[str]:
        query_of(api)
        body_of(api, NoBody, optional=True)
        return answer(runs.resume(unquote(run_id)))


def _add_refusals(api: APIGatewayHttpResolver) -> None:
    @api.exception_handler([NotFoundError, Exception])
    def refused(error: Exception) -> Response[str]:
        if isinstance(error, NotFoundError):
            return _problem(api, _no_such_route(api))
        problem = problems.problem_of(error)
        if problem is None:
            request_id = api.current_event.request_context.request_id
            log.error("request %s failed", request_id, exc_info=error)
            detail = f"The request failed through no fault of yours. The log has more, under {request_id}."
            problem = problems.plain(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
        return _problem(api, problem)


def _no_such_route(api: APIGatewayHttpResolver) -> Problem:
    event = api.current_event
    return problems.plain(HTTPStatus.NOT_FOUND, f"There is no {event.http_method} {without_token(event.path)} here.")


def _problem(api: APIGatewayHttpResolver, problem: Problem) -> Response[str]:
    document = problem.document(without_token(api.current_event.path))
    return Response(problem.status, problems.CONTENT_TYPE, document, headers=dict(problem.headers))


bootstrap.prepare(lambda _: _resolver())
