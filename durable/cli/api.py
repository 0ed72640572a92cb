"""Talks to the HTTP API of a deployment, local or on AWS."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

_TIMEOUT: Final = 35.0
"""Seconds; API Gateway answers within 30."""


class Unreachable(Exception):
    """Nobody answers at the address."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"Nothing answers at {url} ({reason}). Start it with `durable dev`, or name another address with --url."
        )


class Refusal(Exception):
    """The API said no."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.title = str(problem.get("title") or problem.get("message") or f"HTTP status {status}")
        self.detail = str(problem.get("detail") or "")
        super().__init__(f"{self.title}: {self.detail}" if self.detail else self.title)


class Api:
    """The API of one deployment."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ValueError(f"{url!r} is no address of an API; write http://127.0.0.1:8321 or https://...")
        self._url = url.rstrip("/")
        self._opener = _opener(parts.hostname)

    def get(self, path: str, **query: object) -> Any:
        """The answer's JSON; parameters that are None are left out."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._request("GET", f"{path}?{urlencode(given)}" if given else path)

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """The answer's JSON, or None if it has no body."""
        return self._request("POST", path, json.dumps(body).encode() if body is not None else b"", headers or {})

    def delete(self, path: str) -> None:
        """Returns once it is gone."""
        self._request("DELETE", path)

    def _request(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        request = Request(self._url + path, data, {"accept": "application/json", **(headers or {})}, method=method)  # noqa: S310 - checked
        if data:
            request.add_header("content-type", "application/json")
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                return _json(answer.read())
        except HTTPError as error:
            with error:
                raise Refusal(error.code, _problem(error.read())) from None
        except URLError as error:
            raise Unreachable(self._url, str(error.reason)) from None
        except (http.client.HTTPException, OSError) as error:
            raise Unreachable(self._url, str(error) or type(error).__name__) from None


def history_of(api: Api, run_id: str) -> dict[str, Any]:
    """The whole history of a run: an answer holds as much as Lambda can send."""
    path = run_path(run_id, "history")
    whole = page = api.get(path)
    while page.get("cursor") is not None:
        page = api.get(path, cursor=page["cursor"])
        whole["entries"] += page["entries"]
    return whole


def run_path(run_id: str, *rest: str) -> str:
    """The path of a run, or of something of it."""
    return "/".join(("/runs", quote(run_id, safe=""), *rest))


def _opener(host: str | None) -> OpenerDirector:
    """Without the proxy of the environment where the address is this machine."""
    local = host in {"127.0.0.1", "localhost", "::1"}
    return build_opener(ProxyHandler({})) if local else build_opener()


def _json(body: bytes) -> Any:
    return json.loads(body) if body else None


def _problem(body: bytes) -> Mapping[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", problem) if isinstance(problem, dict) else {}
