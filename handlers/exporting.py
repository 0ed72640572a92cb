"""The route that gives a run's history as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from handlers.answers import answer, query_of

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response

    from durable.client import Client


def add_exporting(api: APIGatewayHttpResolver, client: Client) -> None:
    """Adds the route. Lambda answers with 6 MB at most (Lambda quotas); of a larger history the client gives the document."""

    @api.get("/runs/<run_id>/export")
    def export(run_id: str) -> Response[str]:
        query_of(api)
        return answer(client.export(unquote(run_id)))
