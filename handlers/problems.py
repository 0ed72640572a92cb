"""Refusals as problem documents (RFC 9457): what went wrong, for whom, and what to change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError

from durable.errors import (
    DeletionRefused,
    IdempotencyKeySpent,
    InvalidInput,
    InvalidName,
    InvalidToken,
    LaneFull,
    LimitExceeded,
    NotAReviewer,
    NotAvailable,
    NotStorable,
    NotWaiting,
    PayloadUnreadable,
    QueueNotServed,
    RetryRefused,
    RunAlreadyExists,
    RunBlocked,
    RunEnded,
    RunNotFound,
    SealingFailed,
    StoreUnavailable,
    TokenExpired,
    UpdateRejected,
    WorkflowNotRegistered,
)

CONTENT_TYPE: Final = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One refusal."""

    status: int
    type: str
    """The last part of the type's URI: stable, for programs."""
    title: str
    """The same for every problem of the type."""
    detail: str
    """About this occurrence, with what to do."""
    errors: Sequence[Mapping[str, Any]] = ()
    """What a validation found: place (`loc`), message and type of each fault; never the values."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def document(self, instance: str) -> str:
        """The JSON text; `instance` is the path of the request."""
        members: dict[str, Any] = {
            "type": "about:blank" if self.type == "about:blank" else f"urn:durable:problem:{self.type}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
        }
        if self.errors:
            members["errors"] = list(self.errors)
        return json.dumps(members, ensure_ascii=False)


class Refused(Exception):
    """Raise it in a route to answer with a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.detail)


_KNOWN: Final[Mapping[type[Exception], tuple[int, str, str]]] = {
    RunNotFound: (404, "run-not-found", "There is no such run"),
    WorkflowNotRegistered: (404, "workflow-not-found", "There is no such workflow"),
    RunAlreadyExists: (409, "run-exists", "The run id is taken"),
    RunEnded: (409, "run-ended", "The run has ended"),
    LaneFull: (429, "lane-full", "Too many runs wait already"),
    RetryRefused: (409, "retry-refused", "The run cannot be retried"),
    DeletionRefused: (409, "deletion-refused", "The run cannot be deleted"),
    IdempotencyKeySpent: (409, "idempotency-key-spent", "The idempotency key has been used"),
    NotWaiting: (409, "not-waiting", "The run does not wait for that"),
    QueueNotServed: (404, "queue-not-found", "There is no such queue"),
    InvalidToken: (401, "invalid-token", "The token is not accepted"),
    TokenExpired: (410, "token-expired", "The token's time is over"),
    NotAReviewer: (403, "not-a-reviewer", "Somebody else was asked to decide"),
    UpdateRejected: (422, "update-rejected", "The update was rejected"),
    RunBlocked: (409, "run-blocked", "The run needs new code or a person"),
    InvalidName: (422, "invalid-name", "A name or id is not allowed"),
    InvalidInput: (422, "invalid-input", "A value does not fit its type"),
    NotStorable: (422, "not-storable", "A value cannot be stored"),
    LimitExceeded: (413, "limit-exceeded", "A value is too large"),
    StoreUnavailable: (503, "unavailable", "A service did not answer"),
    PayloadUnreadable: (500, "unreadable", "A stored value cannot be read"),
    SealingFailed: (500, "not-sealed", "A value cannot be sealed"),
    NotAvailable: (501, "not-available", "This version cannot do that"),
}


def problem_of(error: Exception) -> Problem | None:
    """The problem that a refusal comes to; None for an error that is our own fault."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, ValidationError):
        return invalid("The request", error)
    for cls in type(error).__mro__:
        if known := _KNOWN.get(cls):
            status, type_, title = known
            headers = {"retry-after": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
            cause = error.__cause__
            errors = _faults(cause) if isinstance(cause, ValidationError) else ()
            return Problem(status=status, type=type_, title=title, detail=str(error), errors=errors, headers=headers)
    return None


def invalid(what: str, error: ValidationError, members: Sequence[str] = ()) -> Problem:
    """A body that is no JSON (400), or that is not what was asked for (422); `members` are those that it may have."""
    faults = _faults(error)
    if any(fault["type"] == "json_invalid" for fault in faults):
        return malformed(f"{what} is not JSON: {faults[0]['msg']}")
    unknown = [fault for fault in faults if members and fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1]
    told = [f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg']}" for fault in faults if fault not in unknown]
    if unknown:
        names = ", ".join(f'"{fault["loc"][0]}"' for fault in unknown)
        told.insert(0, f"there is no {names}; it takes {', '.join(members)}")
    listed = "; ".join(told)
    return Problem(
        status=422,
        type="invalid-request",
        title="The request is not understood",
        detail=f"{what}: {listed}",
        errors=faults,
    )


def malformed(detail: str) -> Problem:
    """A request that cannot even be read."""
    return Problem(status=400, type="malformed", title="The request cannot be read", detail=detail)


def plain(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    """A problem that its HTTP status says all about."""
    return Problem(
        status=status, type="about:blank", title=HTTPStatus(status).phrase, detail=detail, headers=headers or {}
    )


def _faults(error: ValidationError) -> list[dict[str, Any]]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [{"loc": list(fault["loc"]), "msg": fault["msg"], "type": fault["type"]} for fault in found]
